"""Control links at a broker: each message changes a filter set of a subscription (see `wire.filter_change`)."""

from __future__ import annotations

from collections.abc import Callable

from addressing.filter_set import FilterChange
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from wire.delivery import ACCEPTED, Outcome
from wire.errors import AmqpError
from wire.filter_change import CHANGE_BYTES, CREDIT, read_change
from wire.link import IncomingLink
from wire.request_link import RequestLink


def request_link(
    link: IncomingLink,
    held: HeldQueue,
    message_store: MessageStore,
    fail: Callable[[IncomingLink, AmqpError], None],
) -> RequestLink:
    """Return the reader of the changes of the filter set of ``held``, a subscription that has one."""

    def on_request(encoded: bytes) -> Outcome:
        return change(held, encoded, message_store)

    return RequestLink(link, on_request, CHANGE_BYTES, CREDIT, fail)


def change(held: HeldQueue, encoded: bytes, message_store: MessageStore) -> Outcome:
    """Make the change in the message ``encoded`` in the filter set of ``held``, and return the outcome.

    A change with a mistake is rejected with a sentence, and changes nothing.
    """
    filter_set = held.filter_set
    assert filter_set is not None
    read = read_change(filter_set, encoded)
    if not isinstance(read, FilterChange):
        return read
    message_store.change_filters(held, read)
    return ACCEPTED

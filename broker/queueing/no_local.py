"""The no-local filter of JMS: a subscription gets no message that its own client published.

A router puts the connection of its client into the name of a link (`wire.routed_name`). Messages that a client sends on
a link without an address come over a link of the router itself: in spite of its filter the client gets these messages.
"""

from __future__ import annotations

from typing import Any

from broker.queueing.held_queue import HeldQueue
from wire import routed_name
from wire.endpoint import Endpoint
from wire.link import Link
from wire.terminus import Terminus

NO_LOCAL = ("apache.org:no-local-filter:list", 0x0000468C00000003)
"""Descriptors, by which the filter is known in a source: its name in the filter map is the client's choice."""


def no_local_of(wanted: Terminus) -> dict[str, Any]:
    """Return {name: no-local filter} of the source ``wanted``; {} if it has none, or if the subscription is shared."""
    if "shared" in wanted.capabilities:
        return {}
    return {name: value for name, value in wanted.filter.items() if getattr(value, "descriptor", None) in NO_LOCAL}


def _client_of(link: Link) -> str | Endpoint:
    """Return the client of ``link``, as a router names it; the link's connection where no router names a client."""
    return routed_name.client(link.name) or link.endpoint


class NoLocal:
    """Leaves out subscriptions that are not to get a message, since it came from the client of their consumer.

    Always: ``_own`` has the subscriptions whose consumer asked for no-local, each with the client of the consumer
    """

    def __init__(self) -> None:
        self._own: dict[HeldQueue, tuple[Link, str | Endpoint]] = {}

    def __bool__(self) -> bool:
        return bool(self._own)

    def begin(self, held: HeldQueue, link: Link) -> None:
        self._own[held] = link, _client_of(link)

    def end(self, held: HeldQueue, link: Link) -> None:
        own = self._own.get(held)
        if own is not None and own[0] is link:
            del self._own[held]

    def without_own(self, targets: list[HeldQueue], link: Link) -> list[HeldQueue]:
        """Return ``targets``, subscriptions, without those that are not to get a message from ``link``.

        A subscription with a no-local filter is left out if its consumer has the same client as ``link``.
        """
        if not self._own:
            return targets
        client = _client_of(link)
        return [held for held in targets if (own := self._own.get(held)) is None or own[1] != client]

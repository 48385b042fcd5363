"""An operator's operations on the queues of a running broker, in bounded steps.

The operations change a ``MessageStore``, and do no I/O. Each operation is an iterator over the parts of its answer, and
does one step of its work for each part. The caller sends a part once all writes made until then are on disk, and asks
for the next part after the other work of the broker has had a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from addressing.address import Address
from addressing.pattern import PatternSet, is_pattern
from broker.addresses import BrokerAddresses, BrokerAddressKind
from broker.operating.browsing import (
    BODY_BYTES,
    MOST_BODY_BYTES,
    MOST_LISTED,
    MOST_SEARCHED_CHARACTERS,
    Query,
    expires_at,
    pages_steps,
)
from broker.operating.move_targets import MoveTargets
from broker.queueing.held_queue import HeldQueue
from broker.queueing.look import Look
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore
from broker.queueing.moves import move
from broker.store.cause import Reason

STEP_MESSAGES = 10_000
STEP_QUEUES = 500
MOST_SHOWN = 1000
SHOWN = 10
MOST_NUMBER = 2**63 - 1
NAMED = 5
"""An error text for a topic without a named subscriber lists at most this many of its subscribers."""

Evict = Callable[[HeldQueue, float], None]


class AdministrationError(ValueError):
    """The error of a refused request of an operator: its text tells people the reason, and ``code`` tells programs.

    ``code`` is None for most reasons.
    """

    code: str | None = None


class QueueNotCreated(AdministrationError):
    """The error of a request for a queue that the topology has on this broker, and that nobody used or created yet."""

    code = "not-made-yet"


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Part of the answer to an operator, as the fields of a JSON object; all parts but the last have ``has_more``."""

    fields: Mapping[str, Any]
    has_more: bool = False


Parts = Iterator[AnswerPart]
Steps = Iterator[AnswerPart | Look | None]
"""The steps of an operation: a part of the answer, or a Look whose bodies have to be read before the next step, or None
after a step without either."""


def origin_of(entry: QueueEntry) -> str | None:
    """Return the address of the queue, or filter of the subscription, from which the broker moved the entry's message.

    None if a producer sent the message to the queue of the entry; empty if the address is lost.
    """
    return None if entry.cause is None else entry.cause.origin


class Administration:
    """The operations of ``amqpmesh broker`` on the queues and subscriptions of one broker.

    ``evict`` is called to end all links to a queue that an operation deleted.
    """

    def __init__(
        self, addresses: BrokerAddresses, message_store: MessageStore, evict: Evict, wall_offset_s: float
    ) -> None:
        self._addresses = addresses
        self._message_store = message_store
        self._evict = evict
        self._wall_offset_s = wall_offset_s

    # These operations only read the queues, and change nothing.

    def list_queues(self) -> Parts:
        """Yield a summary of each queue and subscription of the broker, STEP_QUEUES to a part."""
        yield from _in_parts(self._message_store.every_queue(), STEP_QUEUES, summary)

    def show(self, address: str, subscriber: str | None = None, messages: int = SHOWN) -> Parts:
        """Yield the details, with the first ``messages`` messages, of one queue, or of the subscriptions to a topic.

        The subscriptions are those whose filters match ``address`` and, for an address with wildcards, those whose
        filters the address covers; with ``subscriber`` only the subscription of this subscriber. Raises
        AdministrationError if there is none.
        """
        if not 0 <= messages <= MOST_SHOWN:
            raise AdministrationError(f"expected 0 to {MOST_SHOWN} messages to show, got {messages}")
        found = self._queue_or_subscriptions(address)
        if subscriber is not None:
            found = [held for held in found if held.subscriber == subscriber]
        if not found:
            raise self._unknown(address, subscriber)
        yield from _in_parts(found, max(1, STEP_QUEUES // max(messages, 1)), partial(self._details, count=messages))

    def browse(
        self,
        address: str,
        subscriber: str | None = None,
        after: int | None = None,
        limit: int = MOST_LISTED,
        search: str | None = None,
        bodies: bool = False,
        body_bytes: int = BODY_BYTES,
    ) -> Steps:
        """Yield one page of the messages with numbers above ``after``, as `broker.operating.browsing` makes it.

        The messages stay in the queue or subscription. Raises AdministrationError for arguments out of range.
        """
        _refuse_beyond("messages to a page", limit, 1, MOST_LISTED)
        _refuse_beyond("bytes of a body to show", body_bytes, 0, MOST_BODY_BYTES)
        if after is not None:
            _refuse_number(after)
        if search is not None:
            _refuse_beyond("characters to search for", len(search), 1, MOST_SEARCHED_CHARACTERS)
        held = self._one(address, subscriber)
        query = Query(-1 if after is None else after, limit, search, bodies, body_bytes)
        for step in pages_steps(self._message_store, held, query, self._wall_offset_s, lambda: _refuse_deleted(held)):
            yield AnswerPart(step) if isinstance(step, dict) else step

    # These operations change queues.

    def create(self, address: str) -> Parts:
        """Make a durable queue of the topology now, instead of at its first use; refuse if the queue exists."""
        kept = self._kept(address)
        if self._message_store.existing_queue(kept) is not None:
            raise AdministrationError(f"queue {kept.text!r} already exists")
        self._message_store.queue(kept)
        yield AnswerPart({"address": kept.text})

    def delete(self, address: str, subscriber: str | None = None, force: bool = False) -> Parts:
        held = self._one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} ends with its clients: it cannot be deleted")
        if force:
            # Messages are purged in steps before the queue is deleted: to delete all messages of a long queue at once
            # would hold up all users of this broker.
            yield from self._purge(held, is_last=False)
            _refuse_deleted(held)
        elif kept := _what_keeps(held):
            raise AdministrationError(f"{_name(held)} still has {kept}: expected 'force' to delete it with them")
        snapshot = held.queue.snapshot()
        left = snapshot.available_count + snapshot.acquired_count + snapshot.unreadable_count
        self._message_store.delete(held)
        self._evict(held, self._message_store.now)
        yield AnswerPart({"messages": left})

    def purge(self, address: str, subscriber: str | None = None) -> Parts:
        """Delete the messages that wait in a queue or subscription now, and its unreadable messages.

        Messages that consumers hold, and messages that arrive later, stay.
        """
        yield from self._purge(self._one(address, subscriber), is_last=True)

    def move(self, source: str, target: str, subscriber: str | None = None, count: int | None = None) -> Parts:
        """Move the first ``count`` waiting messages of a queue or subscription, or all of them, to queue ``target``.

        The target is a durable queue; messages for which its limits leave no room stay.
        """
        held = self._source(source, subscriber)
        _refuse_count(count)
        goal = self._target(target)
        if goal is held:
            raise AdministrationError(f"{source!r} is both source and target: expected another queue as target")
        yield from self._move(held, count, goal, MoveTargets(lambda entry: goal))

    def redrive(self, address: str, to: str | None = None, count: int | None = None) -> Parts:
        """Return a queue's dead letters to their queues of origin, or move its waiting messages to ``to`` if given.

        At most ``count`` messages are moved, if given; messages without a target that has room stay.
        """
        held = self._source(address, None)
        _refuse_count(count)
        goal = None if to is None else self._target(to)
        if goal is held:
            raise AdministrationError(f"{address!r} is both source and target: expected another queue as target")
        goals = MoveTargets(lambda entry: goal or self._origin_queue(entry, held))
        moved = 0
        for part in self._move(held, count, goal, goals, is_back=True):
            moved += part.fields["messages"]
            if not part.has_more and moved == 0 and "without_queue" in part.fields:
                raise AdministrationError(
                    f"no message left in {address!r} can go back to a queue of origin on this broker: "
                    "name the queue that they go to"
                )
            yield part

    # These functions divide long operations into steps.

    def _purge(self, held: HeldQueue, *, is_last: bool) -> Parts:
        snapshot = held.queue.snapshot()
        left, before = snapshot.available_count, snapshot.next_position
        has_more = True
        while has_more:
            _refuse_deleted(held)
            wanted = min(left, STEP_MESSAGES)
            purged = self._message_store.purge(held, wanted, before, self._message_store.now)
            # The first step of a purge deletes all unreadable messages, too, so it may delete more messages than
            # wanted.
            left -= min(purged, wanted)
            has_more = left > 0 and purged >= wanted
            yield AnswerPart({"messages": purged}, has_more or not is_last)

    def _move(
        self,
        held: HeldQueue,
        count: int | None,
        goal: HeldQueue | None,
        goals: MoveTargets,
        *,
        is_back: bool = False,
    ) -> Parts:
        snapshot = held.queue.snapshot()
        waiting, before = snapshot.available_count, snapshot.next_position
        left = waiting if count is None else min(count, waiting)
        has_more = True
        while has_more:
            _refuse_deleted(held)
            if goal is not None:
                _refuse_deleted(goal)
            wanted = min(left, STEP_MESSAGES)
            goals.begin_step()
            if goal is not None:
                wanted = min(wanted, goal.free_count)
            # Packed messages are skipped when dead letters return to their queues of origin: only messages that
            # producers sent to this queue are packed, never messages that were moved to it.
            are_packed = goal is not None or not is_back
            moved = move(
                self._message_store, held, goals.choose, wanted, before, self._message_store.now, is_back, are_packed
            )
            left -= moved
            has_more = left > 0 and moved == wanted > 0
            fields = {"messages": moved, "not_moved": 0 if has_more else left}
            yield AnswerPart(fields if has_more else fields | goals.left_out(left, goal), has_more)

    # These functions find the queue that a request names.

    def _queue_or_subscriptions(self, address: str) -> list[HeldQueue]:
        wanted = Address.parse(address)
        held = self._message_store.existing_queue(wanted)
        if held is not None:
            return [held]
        below = PatternSet([wanted.name])
        heard = {} if is_pattern(wanted.name) else dict.fromkeys(self._message_store.matching(wanted))
        named = {
            held: None
            for held in self._message_store.every_queue()
            if held.is_subscription and _is_below(Address.parse(held.address), wanted, below)
        }
        return [*(heard | named)]

    def _one(self, address: str, subscriber: str | None) -> HeldQueue:
        """Return the queue at ``address`` or, for a topic, the subscription of ``subscriber`` to it.

        Raises AdministrationError if there is none, or a topic with subscriptions is given without a subscriber.
        """
        found = self._queue_or_subscriptions(address)
        if subscriber is None and found and not found[0].is_subscription:
            return found[0]
        for held in found:
            if held.subscriber is not None and held.subscriber == subscriber:
                return held
        subscribers = [held.subscriber for held in found if held.subscriber is not None]
        if subscriber is not None or not subscribers:
            raise self._unknown(address, subscriber)
        named = ", ".join(subscribers[:NAMED]) + (f" and {len(subscribers) - NAMED} more" * (len(subscribers) > NAMED))
        raise AdministrationError(f"{address!r} is a topic: name the subscriber of a subscription, one of {named}")

    def _source(self, address: str, subscriber: str | None) -> HeldQueue:
        held = self._one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} is in memory only: its messages cannot be moved")
        return held

    def _target(self, address: str) -> HeldQueue:
        """Return the durable queue at ``address``, made if there is none and the topology has the queue on this broker.

        Raises AdministrationError for any other address.
        """
        held = self._message_store.existing_queue(Address.parse(address))
        if held is None:
            return self._message_store.queue(self._kept(address))
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} is in memory only: no message can be moved there")
        return held

    def _origin_queue(self, entry: QueueEntry, held: HeldQueue) -> HeldQueue | None:
        """Return the queue that the dead letter ``entry`` came from, made if missing; None if the message has to stay.

        A message stays in ``held`` that is no dead letter, such as one that an operator moved, and a dead letter whose
        origin is ``held`` itself, or no durable queue that the topology still has on this broker.
        """
        origin = origin_of(entry)
        if origin is None or (entry.cause is not None and entry.cause.reason is Reason.MOVED):
            return None
        try:
            goal = self._target(origin)
        except AdministrationError:
            return None
        return None if goal is held else goal

    def _kept(self, address: str) -> Address:
        """Return the address in normal form; raise AdministrationError if the topology has no durable queue there."""
        place = self._addresses.resolve(address)
        if is_pattern(address):
            raise AdministrationError(f"{address!r} has wildcards: expected the name of one queue")
        if place is None:
            raise AdministrationError(f"the topology has no queue {address!r} on this broker")
        if place.holding is BrokerAddressKind.TOPIC:
            raise AdministrationError(
                f"{address!r} is a topic, expected a queue: subscribers make the subscriptions of a topic"
            )
        if place.holding is not BrokerAddressKind.QUEUE:
            raise AdministrationError(f"{address!r} is a {place.holding.value}, expected a durable queue")
        return place.address

    def _unknown(self, address: str, subscriber: str | None) -> AdministrationError:
        if subscriber is not None:
            return AdministrationError(f"no subscription of {subscriber!r} to {address!r} on this broker")
        place = self._addresses.resolve(address)
        if place is not None and place.holding is BrokerAddressKind.TOPIC:
            return AdministrationError(f"no durable subscription to {address!r} on this broker")
        if place is None or is_pattern(address):
            return AdministrationError(f"no queue or subscription {address!r} on this broker")
        return QueueNotCreated(f"there is no queue {address!r} yet: its first use makes it, or `create`")

    def _details(self, held: HeldQueue, *, count: int) -> dict[str, Any]:
        return {**summary(held), "messages": [self._message(entry) for entry in held.queue.first(count)]}

    def _message(self, entry: QueueEntry) -> dict[str, Any]:
        return {
            "number": entry.position,
            "state": entry.state.value,
            "size_bytes": entry.message.size_bytes,
            "delivery_count": entry.delivery_count,
            "expires_at": expires_at(entry, self._wall_offset_s),
            "reason": None if entry.cause is None else entry.cause.reason.value,
            "origin": origin_of(entry),
        }


def summary(held: HeldQueue) -> dict[str, Any]:
    snapshot = held.queue.snapshot()
    return {
        "address": held.address,
        "kind": _kind(held),
        "is_durable": held.is_durable,
        "subscriber": held.subscriber,
        "owner": held.owner,
        "available_count": snapshot.available_count,
        "acquired_count": snapshot.acquired_count,
        "unreadable_count": snapshot.unreadable_count,
        "size_bytes": snapshot.size_bytes,
        "consumer_count": snapshot.consumer_count,
        "browser_count": snapshot.browser_count,
        "producer_count": held.producer_count,
        "enqueued_total": snapshot.enqueued_total,
        "departed_total": snapshot.departed_total,
    }


def _is_below(filter_: Address, wanted: Address, below: PatternSet) -> bool:
    return filter_.space == wanted.space and (filter_.name == wanted.name or filter_.name in below)


def _in_parts(found: list[HeldQueue], size: int, tell: Callable[[HeldQueue], dict[str, Any]]) -> Parts:
    """Yield parts of an answer in which ``tell`` describes the queues, ``size`` queues to a part.

    Queues that were deleted before their turn are left out.
    """
    for start in range(0, max(len(found), 1), size):
        some = found[start : start + size]
        yield AnswerPart({"queues": [tell(held) for held in some if not held.is_deleted]}, start + size < len(found))


def _kind(held: HeldQueue) -> str:
    if held.is_subscription:
        return "subscription"
    if held.is_durable:
        return "queue"
    return str((BrokerAddressKind.PROBE if held.is_probe else BrokerAddressKind.TEMPORARY).value)


def _name(held: HeldQueue) -> str:
    if held.subscriber is not None:
        return f"the subscription of {held.subscriber} to {held.address!r}"
    return f"{_kind(held)} {held.address!r}"


def _what_keeps(held: HeldQueue) -> str:
    """Return in words the messages that a deletion of the queue would lose, and the links that the deletion would cut.

    Empty if there are none.
    """
    snapshot = held.queue.snapshot()
    messages = snapshot.available_count + snapshot.acquired_count + held.coming_count
    messages += snapshot.unreadable_count
    consumers = snapshot.consumer_count + snapshot.browser_count
    counts = {"message": messages, "consumer": consumers, "producer": held.producer_count}
    return ", ".join(f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count)


def _refuse_count(count: int | None) -> None:
    if count is not None and count < 1:
        raise AdministrationError(f"expected 1 or more as the count of messages, got {count}")


def _refuse_beyond(what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise AdministrationError(f"expected {least:,} to {most:,} {what}, got {number:,}")


def _refuse_number(number: int) -> None:
    if not 0 <= number <= MOST_NUMBER:
        raise AdministrationError(f"expected 0 to {MOST_NUMBER} as the number of a message, got {number}")


def _refuse_deleted(held: HeldQueue) -> None:
    if held.is_deleted:
        raise AdministrationError(f"{_name(held)} was deleted while the operation went on")

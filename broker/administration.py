"""What does an operator do to the queues of a broker, one bounded step at a time?

Pure: verbs over ``Stock``. Each is an iterator of parts of an answer; what a part tells of may be said once what was
written until then is on disk, and whoever runs it comes back for the next part when others had their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from addressing.pattern import PatternSet, is_pattern
from broker.addresses import BrokerAddresses, Holding
from broker.cause import Reason
from broker.goals import Goals
from broker.held_queue import HeldQueue
from broker.message import Entry
from broker.moving import move
from broker.stock import Stock

STEP_MESSAGES = 10_000
STEP_QUEUES = 500
MOST_SHOWN = 1000
SHOWN = 10
NAMED = 5
"""Of several that are meant, no more are named in a sentence."""

Evict = Callable[[HeldQueue, float], None]


class AdministrationError(ValueError):
    """It is not done; the sentence says why, and the code what a program may make of it."""

    code: str | None = None


class NotMadeYet(AdministrationError):
    """The topology keeps that queue here, and nobody has used it: there is nothing in it."""

    code = "not-made-yet"


@dataclass(frozen=True, slots=True)
class Part:
    """Part of an answer, as JSON has it; ``has_more`` of all but the last."""

    fields: Mapping[str, Any]
    has_more: bool = False


Parts = Iterator[Part]


def origin_of(entry: Entry) -> str | None:
    """The address of the queue that it was taken from; None for what was sent where it is."""
    return None if entry.cause is None else entry.cause.origin


class Administration:
    """``evict`` ends all links to a queue that was deleted."""

    def __init__(self, addresses: BrokerAddresses, stock: Stock, evict: Evict, wall_offset_s: float) -> None:
        self._addresses = addresses
        self._stock = stock
        self._evict = evict
        self._wall_offset_s = wall_offset_s

    # Looking

    def list_queues(self) -> Parts:
        """Subscriptions too."""
        yield from _in_parts(self._stock.every_queue(), STEP_QUEUES, summary)

    def show(self, address: str, subscriber: str | None = None, messages: int = SHOWN) -> Parts:
        """One queue, or the subscriptions that have to do with a topic, with their first messages."""
        if not 0 <= messages <= MOST_SHOWN:
            raise AdministrationError(f"{messages} messages: 0 to {MOST_SHOWN} are shown")
        found = self._queue_or_subscriptions(address)
        if subscriber is not None:
            found = [held for held in found if held.subscriber == subscriber]
        if not found:
            raise self._unknown(address, subscriber)
        yield from _in_parts(found, max(1, STEP_QUEUES // max(messages, 1)), partial(self._details, count=messages))

    # Changing

    def create(self, address: str) -> Parts:
        """The durable queue that the topology keeps there; by itself it is made when it is first used."""
        kept = self._kept(address)
        if self._stock.existing_queue(kept) is not None:
            raise AdministrationError(f"queue {kept!r} is there already")
        self._stock.queue(kept)
        yield Part({"address": kept})

    def delete(self, address: str, subscriber: str | None = None, force: bool = False) -> Parts:
        held = self._one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} goes with those who use it: it cannot be deleted")
        if force:
            # All at once would hold up everybody who uses this broker.
            yield from self._purge(held, is_last=False)
            _refuse_deleted(held)
        elif kept := _what_keeps(held):
            raise AdministrationError(f"{_name(held)} has {kept}: it is deleted with them by force only")
        snapshot = held.queue.snapshot()
        left = snapshot.available_count + snapshot.acquired_count + snapshot.unreadable_count
        self._stock.delete(held)
        self._evict(held, self._stock.now)
        yield Part({"messages": left})

    def purge(self, address: str, subscriber: str | None = None) -> Parts:
        """Drop what waits now; what a consumer holds is left to it."""
        yield from self._purge(self._one(address, subscriber), is_last=True)

    def move(self, source: str, target: str, subscriber: str | None = None, count: int | None = None) -> Parts:
        """What waits now, or the first ``count`` of it, in order, to a durable queue."""
        held = self._source(source, subscriber)
        _refuse_count(count)
        goal = self._target(target)
        if goal is held:
            raise AdministrationError(f"{source!r} is source and target")
        yield from self._move(held, count, goal, Goals(lambda entry: goal))

    def redrive(self, address: str, to: str | None = None, count: int | None = None) -> Parts:
        """Dead letters go back to where they come from, or all that waits to one queue."""
        held = self._source(address, None)
        _refuse_count(count)
        goal = None if to is None else self._target(to)
        if goal is held:
            raise AdministrationError(f"{address!r} is source and target")
        goals = Goals(lambda entry: goal or self._origin_queue(entry, held))
        for part in self._move(held, count, goal, goals, is_back=True):
            if not part.has_more and part.fields["messages"] == 0 and "without_queue" in part.fields:
                raise AdministrationError(
                    f"the messages in {address!r} come from no queue that is here: say which one they go to"
                )
            yield part

    # Step by step

    def _purge(self, held: HeldQueue, *, is_last: bool) -> Parts:
        snapshot = held.queue.snapshot()
        left, before = snapshot.available_count, snapshot.enqueued_total
        has_more = True
        while has_more:
            _refuse_deleted(held)
            wanted = min(left, STEP_MESSAGES)
            purged = self._stock.purge(held, wanted, before, self._stock.now)
            # Those that cannot be read go with the first step, beyond what was wanted.
            left -= min(purged, wanted)
            has_more = left > 0 and purged >= wanted
            yield Part({"messages": purged}, has_more or not is_last)

    def _move(
        self,
        held: HeldQueue,
        count: int | None,
        goal: HeldQueue | None,
        goals: Goals,
        *,
        is_back: bool = False,
    ) -> Parts:
        snapshot = held.queue.snapshot()
        waiting, before = snapshot.available_count, snapshot.enqueued_total
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
            # What was sent here, and waits far behind, is no dead letter.
            are_packed = goal is not None or not is_back
            moved = move(self._stock, held, goals.choose, wanted, before, self._stock.now, is_back, are_packed)
            left -= moved
            has_more = left > 0 and moved == wanted > 0
            fields = {"messages": moved, "not_moved": 0 if has_more else left}
            yield Part(fields if has_more else fields | goals.left_out(left, goal), has_more)

    # Which queue

    def _queue_or_subscriptions(self, address: str) -> list[HeldQueue]:
        held = self._stock.existing_queue(address)
        if held is not None:
            return [held]
        below = PatternSet([address])
        heard = {} if is_pattern(address) else dict.fromkeys(self._stock.matching(address))
        named = {
            held: None
            for held in self._stock.every_queue()
            if held.is_subscription and (held.address == address or held.address in below)
        }
        return [*(heard | named)]

    def _one(self, address: str, subscriber: str | None) -> HeldQueue:
        """The queue, or that subscription."""
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
        raise AdministrationError(f"{address!r} is a topic: say whose subscription is meant, of {named}")

    def _source(self, address: str, subscriber: str | None) -> HeldQueue:
        held = self._one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} is in memory only: what is in it cannot be moved")
        return held

    def _target(self, address: str) -> HeldQueue:
        """It is made, where the topology keeps it and nobody used it before."""
        held = self._stock.existing_queue(address)
        if held is None:
            return self._stock.queue(self._kept(address))
        if not held.is_durable:
            raise AdministrationError(f"{_name(held)} is in memory only: nothing can be moved there")
        return held

    def _origin_queue(self, entry: Entry, held: HeldQueue) -> HeldQueue | None:
        """None for what has to stay: it is no dead letter, or what it comes from is no queue (any more)."""
        origin = origin_of(entry)
        if origin is None or (entry.cause is not None and entry.cause.reason is Reason.MOVED):
            return None
        try:
            goal = self._target(origin)
        except AdministrationError:
            return None
        return None if goal is held else goal

    def _kept(self, address: str) -> str:
        """In normal form."""
        place = self._addresses.resolve(address)
        if is_pattern(address):
            raise AdministrationError(f"{address!r} has wildcards: name one queue")
        if place is None:
            raise AdministrationError(f"the topology keeps no queue {address!r} on this broker")
        if place.holding is Holding.TOPIC:
            raise AdministrationError(f"{address!r} is a topic: its subscriptions are made by those who subscribe")
        if place.holding is not Holding.QUEUE:
            raise AdministrationError(f"{address!r} is a {place.holding.value}, and goes with those who use it")
        return place.address

    def _unknown(self, address: str, subscriber: str | None) -> AdministrationError:
        if subscriber is not None:
            return AdministrationError(f"no subscription of {subscriber!r} to {address!r} on this broker")
        place = self._addresses.resolve(address)
        if place is not None and place.holding is Holding.TOPIC:
            return AdministrationError(f"nobody subscribes to {address!r} in a way that lasts")
        if place is None or is_pattern(address):
            return AdministrationError(f"no queue or subscription {address!r} on this broker")
        return NotMadeYet(f"there is no queue {address!r} yet: it is made when it is first used, or by create")

    def _details(self, held: HeldQueue, *, count: int) -> dict[str, Any]:
        return {**summary(held), "messages": [self._message(entry) for entry in held.queue.first(count)]}

    def _message(self, entry: Entry) -> dict[str, Any]:
        # Where nobody sent it, it never expires.
        expires_at_s = entry.message.expires_at_s if entry.cause is None else None
        at = None if expires_at_s is None else datetime.fromtimestamp(expires_at_s + self._wall_offset_s, UTC)
        return {
            "number": entry.message_id,
            "state": entry.state.value,
            "size_bytes": entry.message.size_bytes,
            "delivery_count": entry.delivery_count,
            "expires_at": None if at is None else at.isoformat(timespec="milliseconds"),
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


def _in_parts(found: list[HeldQueue], size: int, tell: Callable[[HeldQueue], dict[str, Any]]) -> Parts:
    """Such as are deleted before their turn comes are left out."""
    for start in range(0, max(len(found), 1), size):
        some = found[start : start + size]
        yield Part({"queues": [tell(held) for held in some if not held.is_deleted]}, start + size < len(found))


def _kind(held: HeldQueue) -> str:
    if held.is_subscription:
        return "subscription"
    if held.is_durable:
        return "queue"
    return str((Holding.PROBE if held.is_probe else Holding.TEMPORARY).value)


def _name(held: HeldQueue) -> str:
    if held.subscriber is not None:
        return f"the subscription of {held.subscriber} to {held.address!r}"
    return f"{_kind(held)} {held.address!r}"


def _what_keeps(held: HeldQueue) -> str:
    """What would be lost, and whom it would hit."""
    snapshot = held.queue.snapshot()
    messages = snapshot.available_count + snapshot.acquired_count + held.coming_count
    messages += snapshot.unreadable_count
    consumers = snapshot.consumer_count + snapshot.browser_count
    counts = {"message": messages, "consumer": consumers, "producer": held.producer_count}
    return ", ".join(f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count)


def _refuse_count(count: int | None) -> None:
    if count is not None and count < 1:
        raise AdministrationError(f"a count of {count}, expected 1 or more")


def _refuse_deleted(held: HeldQueue) -> None:
    if held.is_deleted:
        raise AdministrationError(f"{_name(held)} was deleted meanwhile")

"""An operator's operations on the queues of a running broker, in bounded steps.

The operations change a ``MessageStore``, and do no I/O. Each operation is an iterator over the parts of its answer, and
does one step of its work for each part. The caller sends a part once all writes made until then are on disk, and asks
for the next part after the other work of the broker has had a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from broker.addresses import BrokerAddresses
from broker.operating.answers import AdministrationError, AnswerPart, Parts, Steps, kind_of, name_of, refuse_deleted
from broker.operating.arguments import (
    MOST_NUMBER,
    refuse_beyond,
    refuse_number,
    refuse_numbers,
    refuse_selection,
)
from broker.operating.browsing import (
    BODY_BYTES,
    MOST_BODY_BYTES,
    MOST_LISTED,
    MOST_SEARCHED_CHARACTERS,
    BrowseQuery,
    expires_at,
    page_steps,
)
from broker.operating.move_targets import MoveTargets
from broker.operating.named_queues import NamedQueues
from broker.operating.numbered import FIRST_NUMBERS, NumberedMessages, in_steps
from broker.operating.step_pace import StepPace
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore
from broker.queueing.moves import move, move_at
from broker.queueing.queue import Cursor

PART_MESSAGES = 1000
"""After so many messages a part of an answer waits for the disk: all of them then enter their queues in one turn."""
STEP_QUEUES = 500
MOST_SHOWN = 1000
SHOWN = 10

Evict = Callable[[HeldQueue, float], None]


def origin_of(entry: QueueEntry) -> str | None:
    """Return the address of the queue, or filter of the subscription, from which the broker moved the entry's message.

    None if a producer sent the message to the queue of the entry; empty if the address is lost.
    """
    return None if entry.cause is None else entry.cause.origin


class Administration:
    """The operations of ``amqpmesh broker`` on the queues and subscriptions of one broker.

    ``evict`` is called to end all links to a queue that an operation deleted. ``clock`` gives monotonic seconds, by
    which steps are made short.
    """

    def __init__(
        self,
        addresses: BrokerAddresses,
        message_store: MessageStore,
        evict: Evict,
        wall_offset_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._named = NamedQueues(addresses, message_store)
        self._message_store = message_store
        self._evict = evict
        self._wall_offset_s = wall_offset_s
        self._clock = clock

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
        found = self._named.queue_or_subscriptions(address)
        if subscriber is not None:
            found = [held for held in found if held.subscriber == subscriber]
        if not found:
            raise self._named.unknown(address, subscriber)
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
        refuse_beyond("messages to a page", limit, 1, MOST_LISTED)
        refuse_beyond("bytes of a body to show", body_bytes, 0, MOST_BODY_BYTES)
        refuse_number(after)
        if search is not None:
            refuse_beyond("characters to search for", len(search), 1, MOST_SEARCHED_CHARACTERS)
        held = self._named.one(address, subscriber)
        query = BrowseQuery(-1 if after is None else after, limit, search, bodies, body_bytes)
        for step in page_steps(self._message_store, held, query, self._wall_offset_s, lambda: refuse_deleted(held)):
            yield AnswerPart(step) if isinstance(step, dict) else step

    # These operations change queues.

    def create(self, address: str) -> Parts:
        """Make a durable queue of the topology now, instead of at its first use; refuse if the queue exists."""
        kept = self._named.kept(address)
        if self._message_store.existing_queue(kept) is not None:
            raise AdministrationError(f"queue {kept.text!r} already exists")
        self._message_store.queue(kept)
        yield AnswerPart({"address": kept.text})

    def delete(self, address: str, subscriber: str | None = None, force: bool = False) -> Steps:
        held = self._named.one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{name_of(held)} ends with its clients: it cannot be deleted")
        if force:
            # Messages are purged in steps before the queue is deleted: to delete all messages of a long queue at once
            # would hold up all users of this broker.
            yield from self._purge(held, _most(None), is_last=False)
            refuse_deleted(held)
        elif kept := _what_keeps(held):
            raise AdministrationError(f"{name_of(held)} still has {kept}: expected 'force' to delete it with them")
        snapshot = held.queue.snapshot()
        left = snapshot.available_count + snapshot.acquired_count + snapshot.unreadable_count
        self._message_store.delete(held)
        self._evict(held, self._message_store.now)
        yield AnswerPart({"messages": left})

    def purge(self, address: str, subscriber: str | None = None, up_to: int | None = None) -> Steps:
        """Delete the messages that wait in a queue or subscription now, and its unreadable messages.

        Messages that consumers hold, messages that arrive later, and those with numbers above ``up_to`` stay.
        """
        refuse_number(up_to)
        yield from self._purge(self._named.one(address, subscriber), _most(up_to), is_last=True)

    def remove(self, address: str, numbers: list[int], subscriber: str | None = None) -> Steps:
        """Delete the messages with these numbers from a queue or subscription, if they wait or are unreadable.

        The answer has the count of deleted ``messages``, and the numbers of those that are ``missing``, or ``locked``,
        since a consumer holds them.
        """
        refuse_numbers(numbers)
        held = self._named.one(address, subscriber)
        found, pace = NumberedMessages(), StepPace(self._clock, FIRST_NUMBERS)
        for some in in_steps(numbers, pace):
            refuse_deleted(held)
            locked = held.queue.held_at(some)
            found.add(some, self._message_store.remove(held, some, self._message_store.now), locked)
            pace.end()
            yield None
        yield AnswerPart(found.fields())

    def move(
        self,
        source: str,
        target: str,
        subscriber: str | None = None,
        count: int | None = None,
        numbers: list[int] | None = None,
        up_to: int | None = None,
    ) -> Steps:
        """Move waiting messages of a queue or subscription to queue ``target``.

        They are the first ``count`` messages, or those with ``numbers``, or all of them; none with a number above
        ``up_to``. The target is a durable queue; messages for which its limits leave no room stay.
        """
        refuse_selection(count, numbers, up_to)
        held = self._named.source(source, subscriber)
        goal = self._named.target(target)
        if goal is held:
            raise AdministrationError(f"{source!r} is both source and target: expected another queue as target")
        goals = MoveTargets(lambda entry: goal)
        if numbers is None:
            yield from self._move(held, count, _most(up_to), goal, goals)
        else:
            yield from self._move_numbers(held, numbers, goal, goals)

    def redrive(
        self,
        address: str,
        to: str | None = None,
        count: int | None = None,
        numbers: list[int] | None = None,
        up_to: int | None = None,
    ) -> Steps:
        """Return a queue's dead letters to their queues of origin, or move its waiting messages to ``to`` if given.

        ``count``, ``numbers`` and ``up_to`` are as for `move`; messages without a target that has room stay.
        """
        refuse_selection(count, numbers, up_to)
        held = self._named.source(address, None)
        goal = None if to is None else self._named.target(to)
        if goal is held:
            raise AdministrationError(f"{address!r} is both source and target: expected another queue as target")
        goals = MoveTargets(lambda entry: goal or self._named.origin_queue(entry, held, origin_of(entry)))
        if numbers is None:
            steps = self._move(held, count, _most(up_to), goal, goals, is_back=True)
        else:
            steps = self._move_numbers(held, numbers, goal, goals, is_back=True)
        moved = 0
        for step in steps:
            if isinstance(step, AnswerPart):
                moved += step.fields["messages"]
                if not step.has_more and moved == 0 and "without_queue" in step.fields:
                    raise AdministrationError(
                        f"no message left in {address!r} can go back to a queue of origin on this broker: "
                        "name the queue that they go to"
                    )
            yield step

    # These functions divide long operations into steps.

    def _purge(self, held: HeldQueue, up_to: int, *, is_last: bool) -> Steps:
        snapshot = held.queue.snapshot()
        left, before = snapshot.available_count, min(snapshot.next_position, up_to + 1)
        cursor, pace = Cursor(), StepPace(self._clock)
        looked = total = 0
        has_more = True
        while has_more:
            refuse_deleted(held)
            size = pace.begin(PART_MESSAGES - looked)
            wanted = min(left, size)
            cursor.begin_step(size)
            purged = self._message_store.purge(held, wanted, before, self._message_store.now, cursor)
            pace.end()
            # The first step of a purge deletes all unreadable messages, too, so it may delete more messages than
            # wanted.
            left -= min(purged, wanted)
            looked, total = looked + size - cursor.looks, total + purged
            has_more = left > 0 and not cursor.is_done
            if has_more and looked < PART_MESSAGES:
                yield None
                continue
            yield AnswerPart({"messages": total}, has_more or not is_last)
            looked = total = 0

    def _move(
        self,
        held: HeldQueue,
        count: int | None,
        up_to: int,
        goal: HeldQueue | None,
        goals: MoveTargets,
        *,
        is_back: bool = False,
    ) -> Steps:
        snapshot = held.queue.snapshot()
        waiting, before = snapshot.available_count, min(snapshot.next_position, up_to + 1)
        left, total = waiting if count is None else min(count, waiting), 0
        cursor, pace = Cursor(), StepPace(self._clock)
        looked = in_part = 0
        has_more = True
        while has_more:
            refuse_deleted(held)
            if goal is not None:
                refuse_deleted(goal)
            size = pace.begin(PART_MESSAGES - looked)
            wanted = min(left, size)
            goals.begin_step()
            cursor.begin_step(size)
            if goal is not None:
                wanted = min(wanted, goal.free_count)
            # Packed messages are skipped when dead letters return to their queues of origin: only messages that
            # producers sent to this queue are packed, never messages that were moved to it.
            are_packed = goal is not None or not is_back
            moved = move(
                self._message_store,
                held,
                goals.choose,
                wanted,
                before,
                self._message_store.now,
                is_back,
                are_packed,
                cursor,
            )
            pace.end()
            left, total = left - moved, total + moved
            looked, in_part = looked + size - cursor.looks, in_part + moved
            has_more = left > 0 and wanted > 0 and not cursor.is_done
            if has_more and looked < PART_MESSAGES:
                yield None
                continue
            if before < snapshot.next_position and not has_more:
                left = min(left, len(goals.looked_at) - total)
            fields = {"messages": in_part, "not_moved": 0 if has_more else left}
            yield AnswerPart(fields if has_more else fields | goals.left_out(left, goal), has_more)
            looked = in_part = 0

    def _move_numbers(
        self,
        held: HeldQueue,
        numbers: list[int],
        goal: HeldQueue | None,
        goals: MoveTargets,
        *,
        is_back: bool = False,
    ) -> Steps:
        found, pace = NumberedMessages(), StepPace(self._clock, FIRST_NUMBERS)
        for some in in_steps(numbers, pace):
            refuse_deleted(held)
            if goal is not None:
                refuse_deleted(goal)
            goals.begin_step()
            locked = held.queue.held_at(some)
            moved = move_at(
                self._message_store,
                held,
                goals.choose,
                some,
                self._message_store.now,
                is_back,
            )
            found.add(some, moved, locked, goals.looked_at)
            pace.end()
            yield None
        left = len(goals.looked_at) - found.done
        yield AnswerPart(found.fields() | {"not_moved": left} | goals.left_out(left, goal))

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
        "kind": kind_of(held),
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
    """Yield parts of an answer in which ``tell`` describes the queues, ``size`` queues to a part.

    Queues that were deleted before their turn are left out.
    """
    for start in range(0, max(len(found), 1), size):
        some = found[start : start + size]
        yield AnswerPart({"queues": [tell(held) for held in some if not held.is_deleted]}, start + size < len(found))


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


def _most(up_to: int | None) -> int:
    return MOST_NUMBER - 1 if up_to is None else min(up_to, MOST_NUMBER - 1)

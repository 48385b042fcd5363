"""The targets of an operator's move or redrive: a queue for each message, or the reason why the message stays."""

from __future__ import annotations

from collections.abc import Callable

from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import QueueEntry

Find = Callable[[QueueEntry], HeldQueue | None]


class MoveTargets:
    """Chooses the queue to which each message is moved, and counts the messages that have to stay.

    ``find`` gives the queue for an entry, or None if there is none. A queue with a limit takes no more than fits, since
    a move must not make the queue drop or dead-letter other messages.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._rooms: dict[HeldQueue, _Room] = {}
        self._too_many: set[int] = set()
        self.looked_at: set[int] = set()
        """The positions of all entries for which a queue was chosen, or none was found."""

    def begin_step(self) -> None:
        """Forget the room that the last step found: messages may have filled or emptied target queues since."""
        self._rooms.clear()

    def choose(self, entry: QueueEntry) -> HeldQueue | None:
        self.looked_at.add(entry.position)
        held = self._find(entry)
        if held is not None and not self._room_in(held).take(entry.message.size_bytes):
            self._too_many.add(entry.message_id)
            held = None
        return held

    def left_out(self, count: int, only: HeldQueue | None) -> dict[str, int]:
        """Return for each reason the number of messages that stay for it, of ``count`` messages that a move left.

        The reasons are ``for_full_queue`` (the target has no room) and ``without_queue`` (no target); a reason without
        messages is left out. ``only`` is the target of all messages, or None if each message goes to its queue of
        origin: packed messages have no origin, were not looked at, and count as ``without_queue``.
        """
        if only is None:
            too_many = len(self._too_many)
            found = {"without_queue": count - too_many, "for_full_queue": too_many}
        else:
            found = {"for_full_queue": count if only.free_count == 0 else len(self._too_many)}
        return {why: count for why, count in found.items() if count}

    def _room_in(self, held: HeldQueue) -> _Room:
        if held not in self._rooms:
            self._rooms[held] = _Room(held)
        return self._rooms[held]


class _Room:
    """The room that one target queue has: messages and bytes free when a step began, less those moved in since."""

    def __init__(self, held: HeldQueue) -> None:
        self._count, self._bytes = held.free_count, held.free_bytes

    def take(self, size_bytes: int) -> bool:
        if self._count < 1 or self._bytes < size_bytes:
            return False
        self._count -= 1
        self._bytes -= size_bytes
        return True

"""Where do messages go that an operator moves, and which stay where they are?"""

from __future__ import annotations

from collections.abc import Callable

from broker.held_queue import HeldQueue
from broker.message import Entry

Find = Callable[[Entry], HeldQueue | None]


class Goals:
    """``find`` gives the queue for an entry, None for one that has none to go to.

    A queue with a limit takes no more than it has room for: whatever it does when it is full, nobody asked for that.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._rooms: dict[HeldQueue, _Room] = {}
        self._too_many: set[int] = set()

    def begin_step(self) -> None:
        """Others have filled and drained the queues meanwhile."""
        self._rooms.clear()
        self._too_many.clear()

    def choose(self, entry: Entry) -> HeldQueue | None:
        held = self._find(entry)
        if held is not None and not self._room_in(held).take(entry.message.size_bytes):
            self._too_many.add(entry.message_id)
            held = None
        return held

    def left_out(self, count: int, only: HeldQueue | None) -> dict[str, int]:
        """Why ``count`` messages stay, as far as it is known. ``only``: they were to go to that queue; None: to where
        they come from, which was not asked of all of them."""
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
    """Of one queue, at one moment."""

    def __init__(self, held: HeldQueue) -> None:
        self._count, self._bytes = held.free_count, held.free_bytes

    def take(self, size_bytes: int) -> bool:
        if self._count < 1 or self._bytes < size_bytes:
            return False
        self._count -= 1
        self._bytes -= size_bytes
        return True

"""The pending calls of a node, in one heap by deadline. Time is an argument: nothing here reads a clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass


class Timer:
    """A pending call. ``cancel`` may be used at any moment, also after the pending call was made or from within it."""

    __slots__ = ("action", "deadline")

    def __init__(self, deadline: float, action: Callable[[], None]) -> None:
        self.deadline = deadline
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


@dataclass(frozen=True, slots=True)
class RetryDelay:
    """A time to wait before a failed step is tried again, or another step is taken, with the timers that count it."""

    timers: Timers
    seconds: float

    def after(self, action: Callable[[], None]) -> Timer:
        return self.timers.after(self.seconds, action)


class Timers:
    """The pending calls of one node, which sets ``now`` (seconds, monotonic) before each input."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def after(self, delay_s: float, action: Callable[[], None]) -> Timer:
        timer = Timer(self.now + delay_s, action)
        heapq.heappush(self._heap, (timer.deadline, next(self._order), timer))
        return timer

    def next_deadline(self) -> float | None:
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        """Set ``now``, and make every pending call that is due, earliest first, also those that the calls add."""
        self.now = now
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            timer = heapq.heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action is not None:
                action()

"""The size of an operation's steps: as many messages as fit into a time, by the time that the last step took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

STEP_S: Final = 0.0005
"""A step takes about so long, and the other work of the broker has a turn behind it."""
FIRST_MESSAGES: Final = 64
LEAST_MESSAGES: Final = 8
"""A step looks at no fewer messages, however long the last one took, so that an operation comes to its end."""


class StepPace:
    """Chooses how many messages the next step of one operation may look at.

    ``clock``: monotonic seconds. ``first``: the most messages of the first step.
    """

    def __init__(self, clock: Callable[[], float], first: int = FIRST_MESSAGES) -> None:
        self._clock = clock
        self._messages = first
        self._size = 0
        self._began_at = 0.0

    def begin(self, most: int) -> int:
        """Begin a step; return the number of messages that it may look at, ``most`` or fewer."""
        self._began_at = self._clock()
        self._size = min(self._messages, most)
        return self._size

    def end(self) -> None:
        """End the step: the next one is larger or smaller, by the time that this one took for each message."""
        took_s = self._clock() - self._began_at
        if took_s > STEP_S:
            self._messages = max(LEAST_MESSAGES, int(self._size * STEP_S / took_s))
        elif self._size == self._messages and 2 * took_s <= STEP_S:
            self._messages *= 2

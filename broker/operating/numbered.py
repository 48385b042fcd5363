"""The messages that an operator named by their numbers, and what became of each."""

from __future__ import annotations

from typing import Any

STEP_NUMBERS = 10
"""So many of the messages are looked for in a step: each may be in another pack of the queue."""


def in_steps(numbers: list[int]) -> list[list[int]]:
    """Return the numbers, each once, as rising lists of STEP_NUMBERS."""
    rising = sorted(set(numbers))
    return [rising[start : start + STEP_NUMBERS] for start in range(0, len(rising), STEP_NUMBERS)]


class NumberedMessages:
    """What became of the messages that an operator numbered."""

    def __init__(self) -> None:
        self.done = 0
        self._missing: list[int] = []
        self._locked: list[int] = []

    def add(self, numbers: list[int], done: list[int], locked: list[int], left: set[int] | None = None) -> None:
        """Add the ``numbers`` of messages that are done, of those at consumers, and of those ``left`` in place."""
        self.done += len(done)
        self._locked += sorted(locked)
        known = {*done, *locked} | (left or set())
        self._missing += [number for number in numbers if number not in known]

    def fields(self) -> dict[str, Any]:
        return {"messages": self.done, "missing": self._missing, "locked": self._locked}

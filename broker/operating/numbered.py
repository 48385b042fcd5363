"""The messages that an operator named by their numbers, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from broker.operating.step_pace import LEAST_MESSAGES, StepPace

FIRST_NUMBERS: Final = LEAST_MESSAGES
STEP_PLACES: Final = 10
"""A step looks at no more places of the queue, since each may be in another pack, which is opened and packed anew."""
PLACE_NUMBERS: Final = 256
"""So many numbers in a row are one place: about those of one pack."""


def in_steps(numbers: list[int], pace: StepPace) -> Iterator[list[int]]:
    """Yield the numbers, each once, as rising lists. A step begins with each; the caller ends it at ``pace``."""
    for near in _at_few_places(sorted(set(numbers))):
        begin = 0
        while begin < len(near):
            end = begin + pace.begin(len(near) - begin)
            yield near[begin:end]
            begin = end


def _at_few_places(rising: list[int]) -> Iterator[list[int]]:
    """Divide the numbers into lists, each at STEP_PLACES places of the queue at most."""
    near: list[int] = []
    places: set[int] = set()
    for number in rising:
        place = number // PLACE_NUMBERS
        if len(places) == STEP_PLACES and place not in places:
            yield near
            near, places = [], set()
        near.append(number)
        places.add(place)
    yield near


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

"""The numbers by which operators know messages, noted beside the store, so that they only rise.

A broker begins to number at the time since 2020, in tenths of microseconds, and gives fewer numbers than that time
passes. If the machine's clock was set far back before a start, that would give numbers again: a number that an operator
was shown could mean another message. So the broker notes the number below which all that it gives will be until the
next note, and begins at the noted one, or above. A store without a note is one of an older version, and opens as it is.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

NOTE = "numbers"
NOTED_EVERY_S = 60.0
MARGIN_S = 180.0
"""A note is good for so long: the next one may be late, or be lost with what the machine had not written yet."""
MOST_A_SECOND = 10_000_000
START_OF_2020 = 1_577_836_800.0
_MOST = 2**53
_MOST_BYTES = 100


class MessageNumbers:
    """The note in ``directory``, the broker's data directory. ``wall_s``: the Unix time that the broker starts from.

    Made before the broker gives its first number: time is counted from here.
    """

    def __init__(self, directory: Path, wall_s: float, clock: Callable[[], float]) -> None:
        self._path = directory / NOTE
        self._clock, self._began_s = clock, clock()
        self.least = _noted(self._path)
        """No number below this one is to be given."""
        self._begin = max(self.least, int((wall_s - START_OF_2020) * MOST_A_SECOND))

    def note(self, margin_s: float = MARGIN_S) -> None:
        """Note the numbers that may be given until ``margin_s`` from now.

        If the note cannot be written, as on a full disk, the broker goes on: numbers come again only if the clock is
        set back before the next start, too.
        """
        passed_s = self._clock() - self._began_s
        below = self._begin + int((passed_s + margin_s) * MOST_A_SECOND) + 1
        below = min(below, _MOST - 1)
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                length = os.pwrite(handle, json.dumps({"below": below}).encode(), 0)
                os.ftruncate(handle, length)
            finally:
                os.close(handle)


@asynccontextmanager
async def noting(numbers: MessageNumbers) -> AsyncIterator[None]:
    """Note the numbers at the beginning, each NOTED_EVERY_S, and at the end."""

    async def note_again() -> None:
        while True:
            await asyncio.sleep(NOTED_EVERY_S)
            await asyncio.to_thread(numbers.note)

    numbers.note()
    task = asyncio.create_task(note_again())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        numbers.note(0.0)


def _noted(path: Path) -> int:
    """Return the noted number; 1 without a note, or with one that is damaged."""
    try:
        with path.open("rb") as file:
            below = json.loads(file.read(_MOST_BYTES))["below"]
    except (OSError, ValueError, KeyError, TypeError):
        return 1
    return below if type(below) is int and 1 <= below < _MOST else 1

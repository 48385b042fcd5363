"""The wall time that a broker uses from its start on, even if the machine's clock was set since the last start.

Deadlines on disk are wall time. A broker reads the wall clock once, at its start, and from then on a clock that cannot
be set. The time used is noted beside the store, so that the next start of the same boot can tell whether the clock was
set meanwhile, by more than TOLERANCE_S, and then goes on from the noted time: otherwise all deadlines would be over at
once, or hold for years. After a reboot the time since the note is unknown: the broker uses the wall clock or, if the
clock shows a time before this program existed, the later of wall clock and note.
"""

from __future__ import annotations

import json
import math
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

TOLERANCE_S = 60.0
"""After a smaller correction the broker follows the clock, without a log line: deadlines move little."""
NOTE = "clock"
NEVER_SET_S = 1_700_000_000.0
"""A wall clock below this Unix time, before this program existed, was never set: the machine's clock has no battery."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The machine's clocks at one moment: wall time, seconds since the boot, and the id of the boot.

    ``up_s``, the seconds since the boot, include sleep of the machine; ``boot`` is empty if unknown.
    """

    wall_s: float
    up_s: float
    boot: str


def read_clocks() -> ClockReading:
    try:
        boot = BOOT_ID.read_text().strip()
    except OSError:
        boot = ""
    return ClockReading(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot)


def wall_time_s(now: ClockReading, before: ClockReading | None) -> float:
    """Return the Unix time for a broker to start from: of the wall clock, or the time expected from ``before``.

    ``before`` is the note of the broker's last start, None if there is none. The expected time counts if the clock was
    set since then by more than TOLERANCE_S. After a boot the wall clock counts or, if it was never set, the later time.
    """
    if before is None:
        return now.wall_s
    if not now.boot or before.boot != now.boot:
        return max(now.wall_s, before.wall_s) if now.wall_s < NEVER_SET_S else now.wall_s
    expected_s = before.wall_s + now.up_s - before.up_s
    return now.wall_s if abs(now.wall_s - expected_s) <= TOLERANCE_S else expected_s


def settle_wall_time_s(directory: Path, now: ClockReading) -> float:
    """Return the Unix time for a broker to start from, and note this time in ``directory`` for the next start.

    ``directory`` is the data directory of the broker.
    """
    wall_s = wall_time_s(now, _noted(directory / NOTE))
    # If the note of the time cannot be written, as on a full disk, the broker goes on: its next start compares the
    # clock with an older note.
    with suppress(OSError):
        _note(directory / NOTE, ClockReading(wall_s, now.up_s, now.boot))
    return wall_s


def _noted(path: Path) -> ClockReading | None:
    try:
        found = ClockReading(**json.loads(path.read_bytes()))
        is_sound = math.isfinite(found.wall_s) and math.isfinite(found.up_s) and isinstance(found.boot, str)
    except (OSError, ValueError, TypeError):
        return None
    return found if is_sound else None


def _note(path: Path, reading: ClockReading) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        length = os.pwrite(handle, json.dumps(asdict(reading)).encode(), 0)
        os.ftruncate(handle, length)
    finally:
        os.close(handle)

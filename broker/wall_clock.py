"""What time is it, if somebody set the clock while the broker did not run?

Deadlines on disk are wall time. While a broker runs it looks at the wall clock once, at its start, and then at one
that nobody sets. What it went by is noted beside the store, so that the next start of the same boot can tell whether
the clock was set meanwhile: then all deadlines would be over at once, or hold for years. After a reboot nobody knows
for how long the machine was off: the clock is gone by, unless it is one that was never set.
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
"""A clock may be put right by less: no deadline is worth a sentence then."""
NOTE = "clock"
NEVER_SET_S = 1_700_000_000.0
"""Before there was this program: what a machine without a battery says."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Reading:
    """``up_s`` is the time since the boot, in which the machine may have slept; ``boot`` is empty if it has no name."""

    wall_s: float
    up_s: float
    boot: str


def read_clocks() -> Reading:
    try:
        boot = BOOT_ID.read_text().strip()
    except OSError:
        boot = ""
    return Reading(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot)


def wall_time_s(now: Reading, before: Reading | None) -> float:
    """The time to go by. ``before`` is what an earlier start went by, None if it is not known."""
    if before is None:
        return now.wall_s
    if not now.boot or before.boot != now.boot:
        return max(now.wall_s, before.wall_s) if now.wall_s < NEVER_SET_S else now.wall_s
    expected_s = before.wall_s + now.up_s - before.up_s
    return now.wall_s if abs(now.wall_s - expected_s) <= TOLERANCE_S else expected_s


def settle_wall_time_s(directory: Path, now: Reading) -> float:
    """The time to go by from now on, noted in ``directory``, the data of a broker that nobody else uses."""
    wall_s = wall_time_s(now, _noted(directory / NOTE))
    # Without a note the next start goes by the wall clock. A disk may be full.
    with suppress(OSError):
        _note(directory / NOTE, Reading(wall_s, now.up_s, now.boot))
    return wall_s


def _noted(path: Path) -> Reading | None:
    try:
        found = Reading(**json.loads(path.read_bytes()))
        is_sound = math.isfinite(found.wall_s) and math.isfinite(found.up_s) and isinstance(found.boot, str)
    except (OSError, ValueError, TypeError):
        return None
    return found if is_sound else None


def _note(path: Path, reading: Reading) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        length = os.pwrite(handle, json.dumps(asdict(reading)).encode(), 0)
        os.ftruncate(handle, length)
    finally:
        os.close(handle)

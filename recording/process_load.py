"""CPU time and memory of this process, as the operating system counts them."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident memory of this process, in octets."""
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()


def cpu_us() -> int:
    """Return the CPU time of this process since its start, user and system, all threads, in microseconds."""
    return time.process_time_ns() // 1000

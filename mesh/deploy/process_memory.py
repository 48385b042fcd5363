"""What this process takes of the machine, as the control socket of a node or of the supervisor answers `memory`."""

from __future__ import annotations

import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """``python_blocks``: pieces of memory that Python has allocated, about one for each object of at most 512 bytes;
    this includes unreachable objects that no collection has found yet.
    """

    resident_bytes: int
    descriptors: int
    python_blocks: int


def resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()


def process_memory() -> ProcessMemory:
    """Measure this process. The answer is not searched for among objects, so it costs well below a millisecond."""
    # The listing itself has a descriptor open.
    return ProcessMemory(resident_bytes(), len(os.listdir(_DESCRIPTORS)) - 1, sys.getallocatedblocks())

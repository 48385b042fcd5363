"""Memory and descriptors of this process, the answer of a control socket to the request `memory`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recording.process_load import resident_bytes

_DESCRIPTORS: Final = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """``python_blocks``: pieces of memory that Python has allocated, about one for each object of at most 512 bytes.

    Unless objects were collected just before, unreachable ones are among them.
    """

    resident_bytes: int
    descriptors: int
    python_blocks: int


def process_memory(*, is_collected: bool = False) -> ProcessMemory:
    """Measure this process, within a millisecond; with ``is_collected`` after a collection of unreachable objects,
    which may take 0.1 s for each 100,000 objects.
    """
    if is_collected:
        gc.collect()
    # The listing itself has a descriptor open.
    return ProcessMemory(resident_bytes(), len(os.listdir(_DESCRIPTORS)) - 1, sys.getallocatedblocks())


def answer_memory(request: Mapping[str, Any]) -> ProcessMemory:
    """Answer the request `memory` at a control socket; `collect` true asks for a collection before."""
    return process_memory(is_collected=request.get("collect") is True)

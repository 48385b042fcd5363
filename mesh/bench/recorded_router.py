"""Empties the rings of nodes as fast as nodes fill them, so that a benchmark measures the cost of writing records.

The records are discarded.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recording import ring_format as ring

RING_BYTES = 64 << 20
_PAUSE_S = 0.05


@contextmanager
def emptied(rings: Path) -> Iterator[None]:
    """While the context lasts, empty all rings in the folder ``rings`` every 50 ms, as a fast writer of link logs
    would.
    """
    is_over = threading.Event()
    emptying = threading.Thread(target=_empty, args=(rings, is_over), daemon=True)
    emptying.start()
    try:
        yield
    finally:
        is_over.set()
        emptying.join()


def _empty(rings: Path, is_over: threading.Event) -> None:
    found: dict[Path, mmap.mmap] = {}
    while not is_over.wait(_PAUSE_S):
        for path in rings.glob("*.ring"):
            if path not in found:
                with path.open("r+b") as file:
                    found[path] = mmap.mmap(file.fileno(), ring.HEADER_BYTES)
        for header in found.values():
            header[ring.TAKEN_AT : ring.TAKEN_AT + 8] = header[ring.WRITTEN_AT : ring.WRITTEN_AT + 8]

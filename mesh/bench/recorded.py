"""What does a router do that records every delivery? `python -m mesh.bench.recorded PARENT ARGUMENTS`, as the leash.

What is taken from the ring goes nowhere: what is measured is the writing.
"""

from __future__ import annotations

import mmap
import threading
import time

from addressing import link_log_ring as ring
from mesh.bench import leash
from wire.records import record
from wire.ring_file import header

RING_BYTES = 64 << 20
_PAUSE_S = 0.05


def main() -> None:
    memory = mmap.mmap(-1, RING_BYTES)
    memory[: ring.HEADER_BYTES] = header(RING_BYTES, 0, {})
    record(memory, "full")
    threading.Thread(target=_forget, args=(memory,), daemon=True).start()
    leash.main()


def _forget(memory: mmap.mmap) -> None:
    """As if all was taken at once."""
    while True:
        time.sleep(_PAUSE_S)
        memory[ring.TAKEN_AT : ring.TAKEN_AT + 8] = memory[ring.WRITTEN_AT : ring.WRITTEN_AT + 8]


if __name__ == "__main__":
    main()

"""A router that records every delivery: `python -m mesh.bench.recorded PARENT ARGUMENTS`, like `mesh.bench.leash`.

Records taken from the ring are thrown away: the benchmark measures the cost of writing records.
"""

from __future__ import annotations

import mmap
import threading
import time

from mesh.bench import leash
from recording import ring_format as ring
from recording.records import record
from recording.ring_file import header

RING_BYTES = 64 << 20
_PAUSE_S = 0.05


def main() -> None:
    memory = mmap.mmap(-1, RING_BYTES)
    memory[: ring.HEADER_BYTES] = header(RING_BYTES, 0, {})
    record(memory, "full")
    threading.Thread(target=_forget, args=(memory,), daemon=True).start()
    leash.main()


def _forget(memory: mmap.mmap) -> None:
    """Empty the ring every ``_PAUSE_S``, as if a writer took all records at once."""
    while True:
        time.sleep(_PAUSE_S)
        memory[ring.TAKEN_AT : ring.TAKEN_AT + 8] = memory[ring.WRITTEN_AT : ring.WRITTEN_AT + 8]


if __name__ == "__main__":
    main()

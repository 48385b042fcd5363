"""A node that measures the turns of its event loop: `python -m mesh_tests.bench.timed_node FILE PARENT NODE TOPOLOGY`.

Each millisecond a timer notes the CPU time that the loop's thread has used since the timer before, as a histogram in
FILE. A turn of the loop is a part of such a time, or all of it, so no turn takes more than the longest. Unlike the time
by a clock, CPU time does not grow while other processes have the core. The process ends with its parent PARENT.
"""

from __future__ import annotations

import asyncio
import mmap
import runpy
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from addressing.topology.loader import load_topology
from mesh.bench.orphan_guard import leash
from mesh.deploy.node_process import NODE_PROGRAM, TOPOLOGY_FD
from mesh.deploy.node_program import topology_descriptor
from recording import recorder

STEP_US: Final = 20
BINS: Final = 50_000
"""Up to a second; the last bin has all that is longer."""
SIZE_BYTES: Final = 4 * BINS
PERIOD_S: Final = 0.001


class TurnTimes:
    """A histogram of CPU times in FILE, which the benchmark reads."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(SIZE_BYTES))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), SIZE_BYTES)
        self._last_ns = time.thread_time_ns()

    def look(self, loop: asyncio.AbstractEventLoop) -> None:
        now_ns = time.thread_time_ns()
        at = 4 * min((now_ns - self._last_ns) // (STEP_US * 1000), BINS - 1)
        self._last_ns = now_ns
        struct.pack_into("<I", self._memory, at, struct.unpack_from("<I", self._memory, at)[0] + 1)
        loop.call_later(PERIOD_S, self.look, loop)


def counts_in(file: Path) -> Sequence[int]:
    return struct.unpack(f"<{BINS}I", file.read_bytes())


def main() -> None:
    file, parent, node, topology = sys.argv[1:]
    leash(int(parent), signal.SIGTERM)
    times = TurnTimes(Path(file))
    keep_time = recorder._keep_time

    async def keep_time_too(*arguments: Any) -> None:
        times.look(asyncio.get_running_loop())
        await keep_time(*arguments)

    recorder._keep_time = keep_time_too
    given = str(topology_descriptor(load_topology(Path(topology))))
    sys.argv = ["amqpmesh", "node", node, "--topology", topology, TOPOLOGY_FD, given]
    runpy.run_module(NODE_PROGRAM, run_name="__main__")


if __name__ == "__main__":
    main()

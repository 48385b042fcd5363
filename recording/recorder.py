"""Recording of one node from start to end: makes the ring, writes the record of the node's end, and keeps the clock.

The clock is how far UTC is ahead of the node's monotonic clock, which the ring has for the writer.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from recording.columns import FAILED, STOPPED, RecordEvent, RecordKind
from recording.process_load import cpu_us, resident_bytes
from recording.records import Recorder
from recording.ring_file import RingFile
from wire.driver import Driver
from wire.log import Emit, Level, LogEvent

if TYPE_CHECKING:
    from addressing.topology.model import Topology

_PERIOD_S = 1.0
_LOAD_PERIODS = 10
"""Number of seconds from one record of the node's load to the next."""

Counts = Callable[[], tuple[int, int]]
"""Returns the numbers of a node's connections and links."""


@dataclass(frozen=True, slots=True)
class LinkLogOff(LogEvent):
    """The node could not make its ring, the file for its records, and writes no link log until its next start."""

    level: ClassVar[Level] = "warning"
    folder: str
    reason: str


@contextmanager
def recording(
    topology: Topology, name: str, role: str, rings: Path, log: Emit
) -> Iterator[tuple[Recorder, RingFile | None]]:
    """Yield a recorder for node ``name``, and the new ring file in the folder ``rings`` to which the recorder writes.

    The recorder records nothing, and the file is None, if the topology asks for no records, or if the ring file cannot
    be made, as on a full disk. The last record, written when the `with` block ends, says how the node ended; a killed
    node leaves no such record.
    """
    ring = _ring_file(topology, name, role, rings, log)
    recorder = Recorder(ring.memory if ring is not None else None, topology.link_logs.level.value)
    cause = FAILED
    try:
        yield recorder, ring
        cause = STOPPED
    finally:
        recorder.end_second()
        recorder.tell_last({"kind": RecordKind.NODE, "event": RecordEvent.CLOSED, "cause": cause})
        recorder.close()
        if ring is not None:
            ring.close()


def _ring_file(topology: Topology, name: str, role: str, rings: Path, log: Emit) -> RingFile | None:
    if not topology.is_recorded:
        return None
    try:
        about = {
            "node": name,
            "mesh": topology.mesh,
            "role": role,
            "version": version("amqpmesh"),
            "topology": _sum_of(topology.file),
        }
        size_bytes, overwrites = topology.link_logs.ring_bytes, not topology.is_kept
        return RingFile(rings, name, time.time_ns() // 1000, size_bytes, about, overwrites=overwrites)
    except OSError as error:
        log(LinkLogOff(str(rings), error.strerror or str(error)))
        return None


def _sum_of(file: Path | None) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else ""


@asynccontextmanager
async def seconds(
    recorder: Recorder,
    driver: Driver,
    on_second: Callable[[float], None],
    counts: Counts,
    ring: RingFile | None = None,
) -> AsyncIterator[None]:
    """While the body of `async with` runs, set the recorder's clock and call ``on_second`` each second.

    Every 10 s, the load of the process and ``counts`` are recorded.
    Pages of ``ring``, the file of the ring, that were written leave the resident memory. Without a ring, all of this
    is left out. Once the body, in which the caller closes the driver, has ended, call
    ``on_second`` a last time, with or without a ring.
    """
    clock = asyncio.create_task(_keep_time(recorder, driver, on_second, counts, ring))
    try:
        yield
    finally:
        clock.cancel()
        driver.guard_node(lambda: on_second(driver.now()))


async def _keep_time(
    recorder: Recorder, driver: Driver, on_second: Callable[[float], None], counts: Counts, ring: RingFile | None
) -> None:
    for period in itertools.count():
        if not recorder.capacity:
            return
        now_us = int(driver.now() * 1e6)
        recorder.set_clock(time.time_ns() // 1000 - now_us, now_us)
        driver.guard_node(lambda: on_second(driver.now()))
        if period % _LOAD_PERIODS == 0:
            driver.guard_node(lambda: _tell_load(recorder, *counts()))
        if ring is not None:
            ring.let_go_of_written()
        await asyncio.sleep(_PERIOD_S)


def _tell_load(recorder: Recorder, connections: int, links: int) -> None:
    """Record the load of the process. Without room in the ring, leave the record out: the next comes in 10 s."""
    row = {"cpu_us": cpu_us(), "resident_bytes": resident_bytes(), "connections": connections, "links": links}
    recorder.tell_late({"kind": RecordKind.NODE, "event": RecordEvent.CHANGED, **row})

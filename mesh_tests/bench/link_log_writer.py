"""What do records cost the writer, and how large are they? `python -m mesh_tests.bench.link_log_writer`

A node with 100 links, few of them busy, latencies log-normal, bodies of a few sizes, at full level. CPU time is of the
whole way: out of the ring, into the spool, into a file. Then what an idle writer of 20 rings costs.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import click
import numpy

from linklogs.file_names import files_in, hours
from linklogs.writer.intake import IntakeTime
from linklogs.writer.settings import Settings
from linklogs.writer.slots import SLOT_TYPE, Slots
from linklogs.writer.writer import Writer
from mesh_tests.unit.linklogs.rings import RUN, START, RingWriter
from recording import ring_format as ring

LINKS = 100
PER_S = 15_000
POLL_S = 0.1
IDLE_RINGS = 20
IDLE_STEPS = 3000


@click.command()
@click.option("--records", default=2_000_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(records: int, seed: int) -> None:
    """Print one JSON document."""
    with tempfile.TemporaryDirectory() as directory:
        busy = measure(Path(directory) / "busy", records, numpy.random.default_rng(seed))
        idle = measure_idle(Path(directory) / "idle")
    click.echo(json.dumps(busy | idle, indent=2))


def measure(directory: Path, records: int, chance: numpy.random.Generator) -> dict[str, float]:
    rings, out = _made(directory)
    node = RingWriter(rings, capacity=1 << 16)
    slots = deliveries(records, chance)
    writer = Writer(Settings(rings, out), lambda _: None)
    cpu_s = 0.0
    for begin in range(0, records, int(PER_S * POLL_S)):
        some = slots[begin : begin + int(PER_S * POLL_S)]
        _record(node, some)
        cpu_s += _cpu_s(lambda some=some: writer.step(_now(some)))  # type: ignore[misc]
    cpu_s += _cpu_s(lambda: writer.finish(_now(slots[-1:])))
    writer.close()
    node.close()
    sizes = [path.stat().st_size for _, hour in hours(out) for path in files_in(hour)]
    return {
        "records": records,
        "cpu_us_per_record": round(cpu_s / records * 1e6, 4),
        "files": len(sizes),
        "largest_file_bytes": max(sizes),
        "bytes_per_record": round(sum(sizes) / records, 2),
    }


def measure_idle(directory: Path) -> dict[str, float]:
    """Of one core, in percent."""
    rings, out = _made(directory)
    nodes = [RingWriter(rings, f"r{number}", capacity=64) for number in range(IDLE_RINGS)]
    writer = Writer(Settings(rings, out), lambda _: None)
    writer.step(IntakeTime(RUN, 0.0))
    cpu_s = _cpu_s(lambda: [writer.step(IntakeTime(RUN, i * POLL_S)) for i in range(IDLE_STEPS)])
    writer.close()
    for node in nodes:
        node.close()
    return {"idle_rings": IDLE_RINGS, "idle_percent": round(cpu_s / (IDLE_STEPS * POLL_S) * 100, 3)}


def deliveries(count: int, chance: numpy.random.Generator) -> Slots:
    """In the order of their settlement, ``PER_S`` of them a second on average."""
    made = numpy.zeros(count, SLOT_TYPE)
    ends_us = START + numpy.cumsum(chance.exponential(1e6 / PER_S, count)).astype(numpy.int64)
    took_us = numpy.minimum(chance.lognormal(numpy.log(900), 0.8, count), 1e9).astype(numpy.int64)
    producers = numpy.minimum(chance.zipf(1.4, count), LINKS // 2)
    made["start_us"], made["took_us"] = numpy.maximum(0, ends_us - took_us), took_us
    made["size_bytes"] = chance.choice([120, 256, 1024, 1100, 4096, 65536], count, p=[0.3, 0.25, 0.2, 0.15, 0.08, 0.02])
    made["incoming"], made["outgoing"] = producers, LINKS // 2 + (producers + chance.integers(0, 3, count)) % 50
    made["count"], made["kind"] = 1, ring.DELIVERY
    made["outcome"] = chance.choice([0x24, 0x26, 0x27, 0], count, p=[0.97, 0.01, 0.01, 0.01])
    return made


def _record(node: RingWriter, slots: Slots) -> None:
    """Faster than the ring writer of the tests does it; there is room."""
    begin = node.written % node.capacity
    room = numpy.frombuffer(node.map, SLOT_TYPE, node.capacity, ring.HEADER_BYTES)
    room[(begin + numpy.arange(len(slots))) % node.capacity] = slots
    del room
    node.put(ring.WRITTEN_AT, node.written + len(slots))


def _made(directory: Path) -> tuple[Path, Path]:
    rings = directory / "rings"
    rings.mkdir(parents=True)
    return rings, directory / "logs"


def _now(slots: Slots) -> IntakeTime:
    last = slots[-1]
    at_us = int(last["start_us"]) + int(last["took_us"])
    return IntakeTime(RUN - START + at_us, at_us / 1e6)


def _cpu_s(work: object) -> float:
    began = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - began


if __name__ == "__main__":
    main()

"""How long until a new observer is full again? `python -m mesh_tests.bench.cold_start --help`

Rings of a router and a broker have the records of many addresses, each with a producer, a queue and credit, as nodes
list them or wrote them since their start. A process of its own then does what an observer does first: it imports the
observer, reads all rings to their ends, and lists addresses by their rate. Its time is counted from its start.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from mesh_tests.handmade_ring import HandmadeRing

CLIENTS = 1000
CAPACITY = 1 << 21
"""Slots of a ring: 64 MiB, as nodes have."""


def write_rings(folder: Path, addresses: int) -> list[HandmadeRing]:
    """Return the rings; until they are closed, their nodes seem to run."""
    run_us = time.time_ns() // 1000 - 3_600_000_000
    router = HandmadeRing(folder, "r1", run_us, CAPACITY)
    broker = HandmadeRing(folder, "b1", run_us, CAPACITY, "broker")
    for number in range(1, CLIENTS + 1):
        router.tell(
            {"kind": "connection", "event": "opened", "connection": number, "role": "client", "user": f"u{number % 40}",
             "container": f"app-{number}", "remote_address": "127.0.0.1:50000", "direction": "incoming"}
        )  # fmt: skip
    for number in range(1, addresses + 1):
        router.tell(
            {"kind": "link", "event": "opened", "link": number, "connection": number % CLIENTS + 1, "role": "producer",
             "direction": "incoming", "address": f"p.{number}", "treatment": "queue", "name": f"sender-{number}",
             "sender_settle_mode": "unsettled", "receiver_settle_mode": "first"},
            {"kind": "credit", "event": "changed", "link": number, "credit": 250, "unsettled_count": 0},
        )  # fmt: skip
        broker.tell(
            {"kind": "queue", "event": "changed", "queue": number, "address": f"p.{number}", "depth_count": number % 3,
             "depth_bytes": 100, "acquired_count": 0}
        )  # fmt: skip
    for ring in (router, broker):
        ring.beat()
    return [router, broker]


def read_rings(folder: Path) -> dict[str, Any]:
    """Read the rings as an observer does; return the CPU seconds, and the seconds since the start of this process."""
    from mesh.watch import observer
    from mesh.watch.host_model import HostModel
    from mesh.watch.host_rings import HostRings
    from mesh.watch.query import answer, parse
    from recording.entities import ADDRESS

    assert observer
    imported_s = time.process_time()
    host = HostModel(lambda _: ("p.#", "queue"), [("p.#", "queue")])
    rings = HostRings(folder, host, lambda _: None, print)
    # As the observer does until it has read all.
    gc.disable()
    while rings.step():
        pass
    page = answer(parse(ADDRESS, [("sort", "-in_rate")]), host.addresses.values())
    return {
        "import_cpu_s": imported_s, "cpu_s": time.process_time(), "since_start_s": _since_start_s(),
        "addresses": page.total,
    }  # fmt: skip


def _since_start_s() -> float:
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


@click.command()
@click.option("--addresses", default=100_000, help="Number of addresses.", show_default=True)
@click.option("--runs", default=5, help="Number of cold starts.", show_default=True)
@click.option("--read", "folder", type=click.Path(path_type=Path), hidden=True)
def main(addresses: int, runs: int, folder: Path | None) -> None:
    """Print the median, the least and the largest time of a cold start in seconds, and its CPU time, as JSON."""
    if folder is not None:
        click.echo(json.dumps(read_rings(folder)))
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        rings = write_rings(Path(made), addresses)
        command = [sys.executable, "-m", "mesh_tests.bench.cold_start", "--read", made]
        found = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(runs)]
        for ring in rings:
            ring.close()
    said = {
        name: [round(pick([each[name] for each in found]), 2) for pick in (statistics.median, min, max)]
        for name in found[0]
    }
    click.echo(json.dumps({"runs": runs, **said}, indent=2))


if __name__ == "__main__":
    main()

"""How long does a large router's event loop pause, alone and watched? `python -m mesh_tests.bench.loop_pauses --help`

A router has many connections with links, each link on an address of its own. It is left alone at first; then it lists
all that it has for an observer, which starts, is killed and started again, and is asked for pages of all entities. What
counts is the CPU time of the loop's thread from one look to the next (`mesh_tests.bench.timed_node`).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import click

from addressing.topology.loader import load_topology
from mesh.bench.dial import BenchServer
from mesh.bench.loopback_mesh import ADDRESSES, LoopbackPlan, topology_of
from mesh.bench.open_files import make_room
from mesh.bench.processes import BenchProcess, BenchProcesses
from mesh.deploy.control import ask_async
from mesh.deploy.node_process import node_environment
from mesh.deploy.workdir import WorkDir
from mesh_tests.bench.timed_node import BINS, STEP_US, counts_in
from mesh_tests.waiting import wait_until
from recording.ring_format import WRITTEN_AT

HOST = "127.0.0.1"
WAIT_S = 600.0
ENTITIES = ("nodes", "addresses", "patterns", "connections", "links", "users", "queues", "neighbors", "paths")
STILL_S = 3.0
"""A router that has written nothing for so long has listed all; it would go on after 0.1 s at most."""
MARKS_MS = (1.0, 2.0, 5.0, 10.0)


class TimedMesh:
    """A router of which ``folder`` has the topology, its times, and the observer that watches it."""

    def __init__(self, folder: Path, connections: int, links: int) -> None:
        topology = topology_of(LoopbackPlan(1, max_connections=connections + 200, max_links=links + 200))
        topology["watch"] = "on"
        listener = topology["routers"]["r1"]["listeners"][0]
        listener["idle_timeout_s"] = 3600
        self.port = int(listener["port"])
        self._file = folder / "amqpmesh.yml"
        self._file.write_text(json.dumps(topology))
        self._times = folder / "times"
        self.workdir = WorkDir(load_topology(self._file).work_dir)
        self.workdir.make()

    @contextmanager
    def _program(self, module: str, *arguments: str) -> Iterator[None]:
        """Run ``module`` until the body of `with` ends; then kill it."""
        with (self._file.parent / "log").open("ab") as log:
            command = [sys.executable, "-P", "-m", module, *arguments]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=node_environment())
        try:
            yield
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def router(self) -> Iterator[None]:
        with self._program("mesh_tests.bench.timed_node", str(self._times), str(os.getpid()), "r1", str(self._file)):
            wait_until(self.workdir.control_socket("r1").exists, WAIT_S, "the router")
            yield

    @contextmanager
    def observer(self) -> Iterator[str]:
        """Yield the URL of a new observer that has read all records."""
        self.workdir.observer_file.unlink(missing_ok=True)
        arguments = ("watch", "--port", "0", "--topology", str(self._file))
        with self._program("mesh.bench.orphan_guard", str(os.getpid()), *arguments):
            wait_until(self.workdir.observer_file.exists, WAIT_S, "the observer")
            yield str(json.loads(self.workdir.observer_file.read_text())["url"])

    def list_all(self) -> None:
        """Have the router write all that it has into its ring, and wait for the end of that."""
        asyncio.run(ask_async(self.workdir.control_socket("r1"), "relist"))
        before = -1
        while before != (before := self._written()):
            time.sleep(STILL_S)

    def _written(self) -> int:
        ring = next(self.workdir.rings.glob("*.ring"))
        with ring.open("rb") as opened:
            opened.seek(WRITTEN_AT)
            return int.from_bytes(opened.read(8), "little")

    def measured(self, work: Callable[[], None]) -> dict[str, Any]:
        """Return the times of the loop while ``work`` is done, in ms."""
        before = counts_in(self._times)
        began = time.monotonic()
        work()
        took_s = time.monotonic() - began
        return {**figures([a - b for a, b in zip(counts_in(self._times), before, strict=True)]), "s": round(took_s, 1)}


def figures(counts: list[int]) -> dict[str, Any]:
    """Return p99 and most, in ms, and how many times were longer than each of MARKS_MS."""
    total, passed, p99 = sum(counts), 0, 0
    for number, count in enumerate(counts):
        passed += count
        if passed >= 0.99 * total:
            p99 = number
            break
    most = max((number for number in range(BINS) if counts[number]), default=0)
    above = {f"above {mark:g} ms": sum(counts[int(mark * 1000 / STEP_US) :]) for mark in MARKS_MS}
    return {"p99_ms": (p99 + 1) * STEP_US / 1000, "most_ms": (most + 1) * STEP_US / 1000, **above, "looks": total}


def ask_for_pages(url: str, seconds: float) -> None:
    """Ask for the first pages of all entities, again and again, and for the metrics."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for path in (*(f"/api/{entity}?limit=100" for entity in ENTITIES), "/api/links?sort=-rate", "/metrics"):
            with urlopen(url + path, timeout=WAIT_S) as answer:
                answer.read()


def attached(mesh: TimedMesh, sides: BenchProcesses, connections: int, links: int) -> BenchProcess:
    plan = {
        "place": BenchServer(HOST, mesh.port).to_map(), "addresses": ADDRESSES.more("%d"), "is_receiver": True,
        "count": links, "per_session": 100, "connections": connections, "stall_s": WAIT_S,
    }  # fmt: skip
    holder = sides.start("hold_links", plan)
    holder.step()
    holder.go_on()
    holder.step()
    return holder


@click.command()
@click.option("--connections", default=10_000, show_default=True)
@click.option("--links", default=100_000, show_default=True, help="Links of all connections, each on its own address.")
@click.option("--seconds", default=30.0, show_default=True, help="Time for which the router is alone, and for pages.")
def main(connections: int, links: int, seconds: float) -> None:
    """Print the longest times of a router's event loop by state, as JSON, in ms of CPU time."""
    make_room(connections + 200)
    said: dict[str, Any] = {"connections": connections, "links": links}

    def tell(state: str, found: dict[str, Any]) -> None:
        said[state] = found
        click.echo(f"{state}: {json.dumps(found)}", err=True)

    with ExitStack() as stack:
        mesh = TimedMesh(Path(stack.enter_context(tempfile.TemporaryDirectory())), connections, links)
        stack.enter_context(mesh.router())
        sides = stack.enter_context(BenchProcesses())
        tell("clients attach", mesh.measured(lambda: _drop(attached(mesh, sides, connections, links))))
        tell("right after that", mesh.measured(lambda: time.sleep(max(seconds, links / 1000))))
        tell("alone", mesh.measured(lambda: time.sleep(seconds)))
        tell("lists what it has", mesh.measured(mesh.list_all))
        with mesh.observer() as url:
            tell("a new observer, and pages", mesh.measured(lambda: ask_for_pages(url, seconds)))
        with mesh.observer() as url:
            tell("an observer after a kill, and pages", mesh.measured(lambda: ask_for_pages(url, seconds)))
        tell("alone again", mesh.measured(lambda: time.sleep(seconds)))
    click.echo(json.dumps(said, indent=2))


def _drop(_: object) -> None:
    """Forget the value: the clients stay until the benchmark ends."""


if __name__ == "__main__":
    main()

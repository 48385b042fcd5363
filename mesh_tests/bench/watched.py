"""What does a router pay for being watched? `python -m mesh_tests.bench.watched --help`

A router runs at full speed, from one producer to one consumer, in turns with nobody watching, and with viewers of the
console's stream, a scrape of `/metrics` each second and a client that queries `$management` again and again. All of
these share the machine's cores with the router, so what the router pays is its own CPU time for a message; its record
of the event loop's turns is not needed for that. The pairs that are run without any watcher in both turns show what
the machine itself varies by.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import click
from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

from mesh.deploy.workdir import OBSERVER
from mesh_tests.bench.command import rows
from mesh_tests.running_mesh import RunningMesh

TOPOLOGY = """
mesh: watched
watch: "on"
routers: {r1: {}}
addresses: {bench: anycast}
"""
READ_S = 5.0
VIEWERS = 20


class Watchers:
    """Programs that watch a mesh until they are stopped. ``answered`` counts what each kind of them has read."""

    def __init__(self, mesh: RunningMesh) -> None:
        self._url = mesh.observer_url
        self._amqp_url = mesh.url("r1")
        self._is_over = threading.Event()
        self.answered = {"events": 0, "scrapes": 0, "queries": 0}
        work = [*[self._view] * VIEWERS, self._scrape, self._query]
        self._threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _view(self) -> None:
        with urlopen(f"{self._url}/api/stream?entity=links", timeout=READ_S) as stream:
            while not self._is_over.is_set() and stream.readline():
                self.answered["events"] += 1

    def _scrape(self) -> None:
        while not self._is_over.wait(1.0):
            with urlopen(f"{self._url}/metrics", timeout=READ_S) as answer:
                answer.read()
            self.answered["scrapes"] += 1

    def _query(self) -> None:
        connection = BlockingConnection(self._amqp_url, timeout=READ_S, allowed_mechs="ANONYMOUS")
        asking = SyncRequestResponse(connection, "$management")
        properties = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router.link"}
        while not self._is_over.is_set():
            answer = asking.call(Message(properties=properties, body={"attributeNames": []}))
            assert answer.properties["statusCode"] == 200, answer.properties
            self.answered["queries"] += 1
        connection.close()


@contextmanager
def watchers(mesh: RunningMesh, *, are_there: bool) -> Iterator[dict[str, int]]:
    if not are_there:
        yield {}
        return
    found = Watchers(mesh)
    try:
        yield found.answered
    finally:
        found.stop()


def cpu_us(mesh: RunningMesh, messages: int) -> float:
    """CPU time of the router for a message, in us."""
    url, pid = f"{mesh.url('r1')}/bench", mesh.pid("r1")
    loads = ("--mode", "unsettled", "--body", "100")
    found = rows("forward", "--url", url, "--pid", str(pid), "-c", str(messages), "-n", "1", *loads)
    return float(found[0]["cpu_us_per_message"])


def observer_cpu_s(mesh: RunningMesh) -> float:
    fields = Path(f"/proc/{mesh.pid(OBSERVER)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@click.command()
@click.option("--runs", default=9, help="Number of runs of each kind.", show_default=True)
@click.option("--messages", default=2_000_000, help="Messages in each run.", show_default=True)
def main(runs: int, messages: int) -> None:
    """Print medians as JSON: nobody watches, watched, and nobody watches again."""
    kinds = {"nobody": False, "watched": True, "nobody again": False}
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    shares: dict[str, list[float]] = {kind: [] for kind in kinds}
    answered = {"events": 0, "scrapes": 0, "queries": 0}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        mesh = RunningMesh(TOPOLOGY, Path(folder))
        try:
            cpu_us(mesh, messages)
            for _ in range(runs):
                for kind, are_there in kinds.items():
                    with watchers(mesh, are_there=are_there) as read:
                        observer_s, at = observer_cpu_s(mesh), time.monotonic()
                        taken[kind].append(cpu_us(mesh, messages))
                        shares[kind].append((observer_cpu_s(mesh) - observer_s) / (time.monotonic() - at))
                        for name, count in read.items():
                            answered[name] += count
        finally:
            with suppress(AssertionError):
                mesh.down()
    said = {
        kind: {
            "median_us": round(statistics.median(each), 4),
            "runs_us": [round(one, 4) for one in each],
            "observer_cpus": round(statistics.median(shares[kind]), 3),
        }
        for kind, each in taken.items()
    }
    ratio = statistics.median(taken["watched"]) / statistics.median([*taken["nobody"], *taken["nobody again"]])
    took_s = round(time.monotonic() - began, 1)
    click.echo(json.dumps({**said, "ratio": round(ratio, 4), "watchers": answered, "took_s": took_s}, indent=2))


if __name__ == "__main__":
    main()

"""How many user instructions more does a router take for a message while it is watched?

`python -m mesh_tests.bench.watched_instructions --help`. A router runs under callgrind, as in
`mesh_tests.bench.instructions`, in turns without an observer, with an observer that nobody asks, and watched: by pages
of the console, each with a stream of its own, by a scrape of `/metrics` each second, and by a client that queries
`$management`. Instructions are not disturbed by what else the machine does.

A router under callgrind is some fifty times slower, and what happens once a second is not. So the client asks once for
as many messages as a router at full speed forwards while it lets one request pass (`REQUEST_S`); streams and scrapes go
on by the clock, which is fifty times as many for each message as at full speed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import click
from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

from addressing.topology.loader import load_topology
from mesh.deploy.workdir import WorkDir
from mesh_tests.bench.instructions import BATCH, Exchange, Router, running_router
from router.clients.management import REQUEST_S

FULL_SPEED_PER_S = 650_000
"""Messages of 100 bytes that a router forwards in a second (docs/performance.md)."""
MESSAGES = int(FULL_SPEED_PER_S * REQUEST_S) // BATCH * BATCH
ENTITIES = ("nodes", "addresses", "patterns", "connections", "links", "users", "queues", "neighbors", "paths", "links")
"""A page of the console looks at each of these."""
WAIT_S = 120.0


class Observer:
    """An observer of the router's host, as a process of its own."""

    def __init__(self, router: Router) -> None:
        workdir = WorkDir(load_topology(router.topology_file).work_dir)
        workdir.observer_file.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "mesh.bench.orphan_guard", str(os.getpid()), "watch", "--port", "0"]
        command += ["--topology", str(router.topology_file)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.events, self.scrapes = 0, 0
        until = time.monotonic() + WAIT_S
        while not workdir.observer_file.exists():
            if time.monotonic() > until or self._process.poll() is not None:
                raise click.ClickException("the observer did not start")
            time.sleep(0.1)
        self._url = json.loads(workdir.observer_file.read_text())["url"]
        self._connection = BlockingConnection(
            f"amqp://127.0.0.1:{router.port}", timeout=WAIT_S, allowed_mechs="ANONYMOUS"
        )
        self._asking = SyncRequestResponse(self._connection, "$management")
        self.query()

    def query(self) -> None:
        properties = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router.link"}
        answer = self._asking.call(Message(properties=properties, body={"attributeNames": []}))
        if answer.properties["statusCode"] != 200:
            raise click.ClickException(f"the query was answered by {answer.properties}")

    def watch(self) -> None:
        """Begin to look: by a stream for each of ENTITIES, and by a scraper."""
        streams = [threading.Thread(target=self._view, args=(entity,), daemon=True) for entity in ENTITIES]
        self._threads = [*streams, threading.Thread(target=self._scrape, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _view(self, entity: str) -> None:
        with urlopen(f"{self._url}/api/stream?entity={entity}", timeout=WAIT_S) as stream:
            while not self._is_over.is_set() and stream.readline():
                self.events += 1

    def _scrape(self) -> None:
        while not self._is_over.wait(1.0):
            with urlopen(f"{self._url}/metrics", timeout=WAIT_S) as answer:
                answer.read()
            self.scrapes += 1

    def stop(self) -> None:
        self._is_over.set()
        self._connection.close()
        self._process.terminate()
        self._process.wait()


@contextmanager
def observer(router: Router) -> Iterator[Observer]:
    found = Observer(router)
    try:
        yield found
    finally:
        found.stop()


def measure(router: Router, repeat: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return the instructions for a message by state, in each turn, and what the watchers have read."""
    exchange = Exchange(router.port)
    taken: dict[str, list[float]] = {"no observer": [], "nobody looks": [], "watched": []}
    read = {"events": 0, "scrapes": 0, "queries": 0}

    def count(state: str, work: Callable[[], None]) -> None:
        taken[state].append(router.count(work) / MESSAGES)

    exchange.run(MESSAGES // 4 // BATCH * BATCH)
    for _ in range(repeat):
        count("no observer", lambda: exchange.run(MESSAGES))
        with observer(router) as found:
            count("nobody looks", lambda: exchange.run(MESSAGES))
            found.watch()

            def watched(found: Observer = found) -> None:
                exchange.run(MESSAGES // 2 // BATCH * BATCH)
                found.query()
                exchange.run(MESSAGES - MESSAGES // 2 // BATCH * BATCH)

            count("watched", watched)
            read["events"] += found.events
            read["scrapes"] += found.scrapes
            read["queries"] += 1
    return taken, read


@click.command()
@click.option("--repeat", default=5, show_default=True, help="Turns of each state.")
@click.option("--keep", type=click.Path(path_type=Path), help="An empty folder for callgrind's dumps.")
def main(repeat: int, keep: Path | None) -> None:
    """Print the instructions for a message as JSON: median, least and most of each state, and the ratios."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with running_router(keep, is_recorded=True) as router:
        taken, read = measure(router, repeat)
    medians = {state: statistics.median(each) for state, each in taken.items()}
    said = {
        "messages": MESSAGES,
        "turns": repeat,
        **{state: [round(medians[state]), round(min(each)), round(max(each))] for state, each in taken.items()},
        "watched to nobody looks": round(medians["watched"] / medians["nobody looks"], 4),
        "watched to no observer": round(medians["watched"] / medians["no observer"], 4),
        "watchers": read,
    }
    click.echo(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()

"""What does the observer take with many addresses? `python -m mesh_tests.bench.observer --help`

A model with one router, one broker and a number of addresses, each with a producer and a queue, as records make it; the
interface over it is asked in this process, so the times are those of the answers without a socket. Memory is what the
process grows by while the model is made.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from starlette.testclient import TestClient

from addressing.topology.loader import parse_topology
from mesh.watch.access import Access
from mesh.watch.console import Console
from mesh.watch.rest import ObserverState, application
from mesh.watch.visible_rows import RowsByOperator
from mesh_tests.unit.mesh.watch.sample_host import large_host

TOKEN = "t" * 43
REQUESTS = {
    "first page of addresses": "/api/addresses?limit=50",
    "addresses by rate": "/api/addresses?sort=-in_rate&limit=50",
    "addresses by a filter": "/api/addresses?filter=address~99&limit=50",
    "links by a filter and rate": "/api/links?filter=role=producer&sort=-rate&limit=50",
    "queues by depth": "/api/queues?sort=-depth&limit=50",
    "one address": "/api/addresses/p.77",
    "metrics": "/metrics",
    "detailed metrics of 1,000 queues": "/metrics/detailed?family=queue&top=1000",
}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def taken_ms(ask: Callable[[], int], runs: int) -> list[float]:
    """The time of each answer, after one that is not counted."""
    assert ask() == 200
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        assert ask() == 200
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)


@click.command()
@click.option("--addresses", default=100_000, help="Number of addresses.", show_default=True)
@click.option("--runs", default=100, help="Number of answers to each request.", show_default=True)
def main(addresses: int, runs: int) -> None:
    """Print the median and the 99th percentile of each request in ms, and the memory of 10,000 addresses, as JSON."""
    topology = parse_topology("mesh: m\nrouters: {r1: }\naddresses: {'p.#': anycast, q: anycast}\n")
    before = resident_bytes()
    host = large_host(addresses).model
    grown = resident_bytes() - before
    rows = RowsByOperator(host, topology)
    state = ObserverState("m", "1", host, Access(topology, TOKEN, time.time), rows, is_complete=True)
    with tempfile.TemporaryDirectory() as folder:
        state.console = Console(topology, host, state.access, rows, Path(folder) / "token")
        client = TestClient(application(state), base_url="http://127.0.0.1")
        client.headers["authorization"] = f"Bearer {TOKEN}"
        said = {}
        for name, path in REQUESTS.items():
            taken = taken_ms(lambda path=path: client.get(path).status_code, runs)  # type: ignore[misc]
            said[name] = {
                "p50_ms": round(statistics.median(taken), 1),
                "p99_ms": round(taken[min(runs - 1, int(runs * 0.99))], 1),
            }
    of_each = {"bytes_per_10000_addresses": round(grown / addresses * 10_000)}
    click.echo(json.dumps({"addresses": addresses, "runs": runs, **of_each, "answers": said}, indent=2))


if __name__ == "__main__":
    main()

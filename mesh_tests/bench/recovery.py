"""How soon does a broker with millions of messages deliver after kill -9, and in how much memory?

`python -m mesh_tests.bench.recovery --help`

The messages have priorities 0 to 9 and a time to live of one to two hours, both random. They are written as the broker
writes them; then it runs in a mesh, a consumer behind a router takes some, the broker is killed and its supervisor
starts it again.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.segments import SEGMENT_MESSAGES
from broker.store.sqlite import SqliteStore
from mesh.bench.meter import status_bytes
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.message import Message, decode, encode

QUEUE = QueueRow(1, QueueKind.QUEUE, "jobs")
AT_ONCE = 100 * SEGMENT_MESSAGES
TTL_S = (3600.0, 7200.0)
PATIENCE_S = 120.0
CREDIT = 1000
TOPOLOGY = """
mesh: recovery
node_tls: false
brokers: {b1: {routers: [r1], data: b1}}
routers: {r1: {listeners: [{authentication: none}]}}
addresses: {jobs: {type: queue, broker: b1}}
"""


def fill(directory: Path, count: int, body_bytes: int) -> None:
    """One queue with so many messages."""
    store = SqliteStore(directory)
    list(store.load().segments)
    choose = random.Random(count)
    bodies = [encode(Message(bytes(body_bytes), priority=priority, durable=True)) for priority in range(10)]
    now_ms = int(time.time() * 1000)
    store.commit(WriteBatch(queues=[QUEUE]))
    for first in range(1, count + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count + 1))
        batch = WriteBatch(entries=[(QUEUE.queue_id, number, 0) for number in numbers])
        for number in numbers:
            body = bodies[priority := choose.randrange(10)]
            expires_at_ms = now_ms + int(choose.uniform(*TTL_S) * 1000)
            batch.messages.append((number, len(body), priority, expires_at_ms, body))
        store.commit(batch)
    store.close()


@click.command()
@click.option("--messages", default=10_000_000, show_default=True)
@click.option("--body", default=100, show_default=True, help="Bytes.")
@click.option("--runs", default=5, show_default=True)
@click.option("--json", "is_json", is_flag=True, help="Print JSON: median, least and most.")
def main(messages: int, body: int, runs: int, is_json: bool) -> None:
    """Print the time from each SIGKILL to the next delivery, and the broker's memory, now and at most."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        fill(Path(folder) / "b1", messages, body)
        click.echo(f"{messages:,} messages written in {time.monotonic() - began:.0f} s", err=is_json)
        found: list[Recovery] = []
        # What the disk has still to do is not the broker's.
        os.sync()
        for _ in range(runs):
            # A new one: its supervisor starts what dies again and again ever later.
            mesh = RunningMesh(TOPOLOGY, Path(folder))
            try:
                found.append(run(mesh))
                click.echo(str(found[-1]), err=is_json)
            finally:
                mesh.down()
    if is_json:
        click.echo(json.dumps(summary(found)))


@dataclass(frozen=True, slots=True)
class Recovery:
    """One crash of the broker: time until the next delivery, memory of the broker then and at most."""

    next_delivery_s: float
    resident_mb: float
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"next delivery after {self.next_delivery_s:.2f} s, resident {self.resident_mb:.0f} MB,"
            f" at most {self.peak_mb:.0f} MB"
        )


def summary(found: list[Recovery]) -> dict[str, dict[str, float]]:
    def of(values: list[float]) -> dict[str, float]:
        return {"median": statistics.median(values), "least": min(values), "most": max(values)}

    return {
        "next_delivery_s": of([each.next_delivery_s for each in found]),
        "peak_mb": of([each.peak_mb for each in found]),
    }


def run(mesh: RunningMesh) -> Recovery:
    with WireClient(mesh.port("r1"), container_id="consumer") as client:
        link = client.receiver("jobs", credit=CREDIT)
        take(client)
        link.grant(CREDIT)
        client.wait_arrived(CREDIT, PATIENCE_S)
        mesh.kill("b1")
        killed_at = time.monotonic()
        client.settle_all()
        link.grant(CREDIT)
        client.wait_arrived(1, PATIENCE_S)
        passed_s = time.monotonic() - killed_at
        assert set(take(client)) == {9}
        pid = mesh.pid("b1")
        now, most = (status_bytes(pid, what) / 1e6 for what in ("VmRSS", "VmHWM"))
    return Recovery(passed_s, now, most)


def take(client: WireClient) -> list[int]:
    """The priorities of what its credit is for, as they came."""
    client.wait_arrived(CREDIT, PATIENCE_S)
    return [decode(each.data).priority for each in client.settle_all()]


if __name__ == "__main__":
    main()

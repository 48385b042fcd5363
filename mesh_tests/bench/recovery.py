"""How soon does a broker with millions of messages deliver after kill -9, and in how much memory?

`python -m mesh_tests.bench.recovery --help`

The messages have priorities 0 to 9 and a time to live of one to two hours, both random. They are written as the broker
writes them; then it runs in a mesh, a consumer behind a router takes some, the broker is killed and its supervisor
starts it again.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
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
def main(messages: int, body: int, runs: int) -> None:
    """Print the time from each SIGKILL to the next delivery, and the broker's memory, now and at most."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        fill(Path(folder) / "b1", messages, body)
        click.echo(f"{messages:,} messages written in {time.monotonic() - began:.0f} s")
        # What the disk has still to do is not the broker's.
        os.sync()
        for _ in range(runs):
            # A new one: its supervisor starts what dies again and again ever later.
            mesh = RunningMesh(TOPOLOGY, Path(folder))
            try:
                click.echo(run(mesh))
            finally:
                mesh.down()


def run(mesh: RunningMesh) -> str:
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
    return f"next delivery after {passed_s:.2f} s, resident {now:.0f} MB, at most {most:.0f} MB"


def take(client: WireClient) -> list[int]:
    """The priorities of what its credit is for, as they came."""
    client.wait_arrived(CREDIT, PATIENCE_S)
    return [decode(each.data).priority for each in client.settle_all()]


if __name__ == "__main__":
    main()

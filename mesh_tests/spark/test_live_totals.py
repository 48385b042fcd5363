"""What a report says that addresses moved is what the routers of that very mesh counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mesh_tests.live.test_link_logs import TOPOLOGY
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.spark.reports import report

ROUTERS = ("r1", "r2", "r3")
COUNTS = {"rpc": 300, "few": 200, "orders": 100}


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[RunningMesh]:
    mesh = RunningMesh(TOPOLOGY, tmp_path)
    yield mesh
    mesh.down()


def exchange(stack: ExitStack, mesh: RunningMesh, address: str, count: int) -> None:
    """``count`` messages from r1 to r3, each accepted. Links stay: a router forgets counters of what nobody uses."""
    consumer, producer = (stack.enter_context(WireClient(mesh.port(router))) for router in ("r3", "r1"))
    consumer.receiver(address, credit=count)
    sender = producer.sender(address)
    numbers = [producer.send_when_due(sender, "x" * 100) for _ in range(count)]
    both = (consumer, producer)
    wait_with(both, lambda: len(consumer.arrived) >= count, f"{count} deliveries")
    consumer.settle_all()
    wait_with(both, lambda: not any(map(producer.is_unsettled, numbers)), "all to be settled")


def counters(mesh: RunningMesh) -> Counter[tuple[str, str, str]]:
    """What came in and went out at each router, by address."""
    found: Counter[tuple[str, str, str]] = Counter()
    for router in ROUTERS:
        for each in mesh.snapshot(router)["node"]["addresses"]:
            for side in ("in", "out"):
                found[router, each["address"], side] = each[f"deliveries_{side}"]
    return found


def test_the_totals_of_a_report_are_those_of_the_routers_own_counters(
    spark: SparkSession, mesh: RunningMesh, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        for address, count in COUNTS.items():
            exchange(stack, mesh, address, count)
        counted = counters(mesh)
    mesh.down()
    tables = report(spark, tmp_path / ".amqpmesh" / "recorded" / "linklogs").by_name
    found: Counter[tuple[str, str, str]] = Counter()
    for row in tables["links"].where("node != 'b1'").collect():
        found[row.node, row.address, row.side] += row.messages or 0
    for address, count in COUNTS.items():
        own = {key: messages for key, messages in counted.items() if key[1] == address}
        assert {key: found[key] for key in own} == own
        # What goes to a broker and comes from it, a router counts by link only.
        assert own.get(("r1", address, "in")) == (None if address == "orders" else count)
        ends = tables["addresses"].where(f"address = '{address}' and peer = 'client'").collect()
        assert {(row.side, row.messages, row.accepted) for row in ends} == {("in", count, count), ("out", count, count)}

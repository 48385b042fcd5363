"""Do the files of a mesh's link logs say what happened, though its processes are killed?"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mesh.deploy.workdir import WRITER
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.rings import read_ring
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: recorded
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {connect: [r3], listeners: [{authentication: none}]}
  r3: {listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r3]}
addresses:
  rpc: anycast
  few: {type: anycast, link_log: summary}
  orders: queue
link_logs: {level: full, ring_bytes: 4194304}
"""
MESSAGES = 300

Row = dict[str, Any]


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[RunningMesh]:
    mesh = RunningMesh(TOPOLOGY, tmp_path)
    yield mesh
    mesh.down()


def rows(mesh: RunningMesh) -> dict[str, list[Row]]:
    """By node."""
    folder = mesh.topology_file.parent / ".amqpmesh" / "recorded" / "linklogs"
    found: dict[str, list[Row]] = {}
    for file in sorted(folder.glob("node=*/hour=*/*.parquet")):
        node = file.parent.parent.name.removeprefix("node=")
        found.setdefault(node, []).extend(pq.read_table(file).to_pylist())
    return found


def of_address(found: list[Row], address: str) -> list[Row]:
    """Deliveries that came over its links."""
    links = {(row["run"], row["link"]) for row in found if row["kind"] == "link" and row["address"] == address}
    return [row for row in found if row["incoming"] is not None and (row["run"], row["incoming"]) in links]


def exchange(mesh: RunningMesh, address: str, count: int, router: str = "r3") -> None:
    """``count`` messages from r1 to a consumer at ``router``, each accepted."""
    with WireClient(mesh.port(router)) as consumer, WireClient(mesh.port("r1")) as producer:
        consumer.receiver(address, credit=count)
        sender = producer.sender(address)
        numbers = [producer.send_when_due(sender, "x" * 100) for _ in range(count)]
        both = (consumer, producer)
        wait_with(both, lambda: len(consumer.arrived) >= count, f"{count} deliveries")
        consumer.settle_all()
        wait_with(both, lambda: not any(map(producer.is_unsettled, numbers)), "all to be settled")


def test_every_router_on_the_way_has_each_message_and_the_totals_are_those_of_its_own_counters(mesh: RunningMesh):
    exchange(mesh, "rpc", MESSAGES)
    exchange(mesh, "few", MESSAGES)
    counted = {
        router: {each["address"]: each["deliveries_in"] for each in mesh.snapshot(router)["node"]["addresses"]}
        for router in ("r1", "r3")
    }
    mesh.down()
    found = rows(mesh)
    for router in ("r1", "r2", "r3"):
        deliveries = of_address(found[router], "rpc")
        assert {row["kind"] for row in deliveries} == {"delivery"}
        assert Counter(row["outcome"] for row in deliveries) == {"accepted": MESSAGES}
        summed = of_address(found[router], "few")
        assert {row["kind"] for row in summed} == {"traffic"}
        assert sum(row["count"] for row in summed) == MESSAGES
        assert len(summed) < MESSAGES
    for router, totals in counted.items():
        for address, total in totals.items():
            if address in ("rpc", "few"):
                assert sum(row["count"] for row in of_address(found[router], address)) == total == MESSAGES


def test_messages_of_a_queue_are_recorded_by_its_broker_as_they_come_and_go(mesh: RunningMesh):
    exchange(mesh, "orders", MESSAGES)
    mesh.down()
    found = rows(mesh)["b1"]
    (queue,) = {row["queue"] for row in found if row["kind"] == "queue" and row["address"] == "orders"}
    events = Counter(row["event"] for row in found if row["kind"] == "message" and row["queue"] == queue)
    assert events == {"enqueued": MESSAGES, "dequeued": MESSAGES}
    links = {
        (row["direction"], row["role"], row["treatment"]) for row in found if row["kind"] == "link" and row["address"]
    }
    assert links >= {("incoming", "router", "queue"), ("outgoing", "router", "queue")}


def told_kept(mesh: RunningMesh, node: str) -> list[int]:
    """What the node has told so far of deliveries that receivers keep."""
    rings = mesh.topology_file.parent / ".amqpmesh" / "recorded" / "rings"
    (ring,) = rings.glob(f"{node}.*.ring")
    return [row["unsettled_count"] for row in read_ring(ring) if row.get("unsettled_count")]


def test_deliveries_that_a_consumer_keeps_are_told_by_its_router_and_by_the_broker(mesh: RunningMesh):
    with WireClient(mesh.port("r3")) as consumer, WireClient(mesh.port("r1")) as producer:
        consumer.receiver("orders", credit=3)
        sender = producer.sender("orders")
        for _ in range(5):
            producer.send_when_due(sender, "x")
        wait_with((consumer, producer), lambda: len(consumer.arrived) == 3, "3 deliveries")
        wait_until(lambda: 3 in told_kept(mesh, "r3") and 3 in told_kept(mesh, "b1"), 30.0, "the nodes to tell of 3")
    mesh.down()
    found = rows(mesh)
    for node in ("r3", "b1"):
        (kept,) = [row for row in found[node] if row["event"] == "changed" and row["unsettled_count"]]
        (link,) = [row for row in found[node] if row["event"] == "opened" and row["link"] == kept["link"]]
        assert (kept["credit"], link["address"], link["direction"]) == (0, "orders", "outgoing"), node
    depths = [(row["depth_count"], row["acquired_count"]) for row in found["b1"] if row["acquired_count"] is not None]
    assert (5, 3) in depths


def test_what_a_killed_router_had_recorded_is_written_whole(mesh: RunningMesh):
    exchange(mesh, "rpc", MESSAGES, router="r2")
    mesh.kill("r1")
    mesh.down()
    found = rows(mesh)["r1"]
    first = min(row["run"] for row in found)
    assert sum(row["run"] == first for row in of_address(found, "rpc")) == MESSAGES


def test_a_node_that_is_stopped_says_so_as_its_last_and_one_that_is_killed_does_not(mesh: RunningMesh):
    exchange(mesh, "orders", 10)
    for node in ("r2", "b1"):
        before = mesh.pid(node)
        mesh.kill(node)
        wait_until(lambda node=node, before=before: mesh.pid(node) != before, 30.0, f"{node} to be started again")
    exchange(mesh, "orders", 10)
    mesh.down()
    found = rows(mesh)
    for node in ("r2", "b1"):
        runs = sorted({row["run"] for row in found[node]})
        assert len(runs) == 2
        ends = [row for row in found[node] if row["kind"] == "node" and row["event"] == "closed"]
        assert [(row["run"], row["cause"]) for row in ends] == [(runs[1], "stopped")]
        assert ends[0]["at_us"] >= max(row["at_us"] for row in found[node] if row["kind"] != "node")


def test_a_killed_writer_comes_back_and_loses_and_doubles_nothing(mesh: RunningMesh):
    for _ in range(3):
        exchange(mesh, "rpc", MESSAGES)
        before = mesh.pid(WRITER)
        os.kill(before, signal.SIGKILL)
        exchange(mesh, "rpc", MESSAGES)
        assert mesh.pid(WRITER) != before
    mesh.down()
    found = rows(mesh)
    for router in ("r1", "r2", "r3"):
        assert len(of_address(found[router], "rpc")) == 6 * MESSAGES


def test_what_is_to_be_redacted_is_in_no_file_and_what_is_alike_stays_alike(tmp_path: Path):
    (tmp_path / "key").write_text("a secret of the test")
    redacted = TOPOLOGY.replace("level: full", "level: full, redact: key")
    mesh = RunningMesh(redacted, tmp_path)
    try:
        exchange(mesh, "orders", 10)
    finally:
        mesh.down()
    found = [row for each in rows(mesh).values() for row in each]
    assert not any("orders" in str(value) for row in found for value in row.values())
    links = [row for row in found if row["kind"] == "link" and row["event"] == "opened"]
    assert {row["role"] for row in links} >= {"producer", "consumer", "circuit", "broker"}
    # Of one address: r1 has it from a producer and for the circuit, r2 twice, r3 from the circuit and for the broker.
    assert max(Counter(row["address"] for row in links).values()) >= 6
    connections = [row for row in found if row["kind"] == "connection" and row["event"] == "opened"]
    assert not any("127.0.0.1" in row["remote_address"] for row in connections)

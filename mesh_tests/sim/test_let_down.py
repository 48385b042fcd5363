"""A broker dies while its messages wait in routers on the way to a consumer: who gets them, and how often?"""

from __future__ import annotations

from pathlib import Path

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import body as message
from mesh_tests.sim.test_fallback import decoded, numbered, texts, wait_for_brokers
from wire.link import RECEIVE_FIRST, SEND_MIXED

TEXTS = numbered("m" * 100, 40)


def mesh_with(folder: Path) -> SimMesh:
    """A line of three; both shards are at r1."""
    mesh = SimMesh(
        {
            "mesh": "let-down",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {name: {"data": name, "routers": ["r1"]} for name in ("b1", "b2")},
            "addresses": {"orders": {"type": "queue", "brokers": ["b1", "b2"]}},
        },
        folder,
    )
    mesh.converge()
    wait_for_brokers(mesh)
    return mesh


def piled_up_at(mesh: SimMesh, egress: str) -> SimReceiver:
    """A consumer with credit for all, whose window is full after the first few; the rest waits at its router."""
    client = mesh.client(egress, "slow", max_frame_bytes=512, window_frames=4)
    consumer = client.receiver("orders", credit=100, modes=(SEND_MIXED, RECEIVE_FIRST))
    consumer.accepts = consumer.reads = False
    producer = mesh.client("r1", "producer").sender("orders")
    for text in TEXTS:
        mesh.send(producer, message(text))
    mesh.run_until(lambda: len(producer.outcomes) == len(TEXTS))
    mesh.run(1)
    return consumer


def lose_brokers(mesh: SimMesh) -> None:
    for broker in ("b1", "b2"):
        mesh.kill_broker(broker)
    mesh.run(1)


def start_brokers(mesh: SimMesh) -> None:
    for broker in ("b1", "b2"):
        mesh.start_broker(broker)


def test_what_waits_on_the_way_to_a_consumer_is_nobodys_once_its_broker_is_lost(tmp_path: Path, egress: str):
    mesh = mesh_with(tmp_path)
    piled_up_at(mesh, egress)
    lose_brokers(mesh)
    other = mesh.client(egress, "other").receiver("orders", credit=100)
    mesh.run(3)
    assert other.messages == []
    start_brokers(mesh)
    mesh.run_until(lambda: len(other.messages) >= len(TEXTS))
    mesh.run(3)
    assert sorted(texts(other)) == sorted(TEXTS)
    assert all(decoded(each).delivery_count for each in other.messages)


def test_what_is_let_down_on_a_full_connection_leaves_its_credit_to_the_next(tmp_path: Path):
    mesh = mesh_with(tmp_path)
    consumer = mesh.client("r3", "consumer").receiver("orders", credit=1)
    producer = mesh.client("r1", "producer").sender("orders")
    mesh.send(producer, message("first"))
    mesh.run_until(lambda: len(consumer.messages) == 1)
    mesh.run(3)
    full = next(end for node, end in mesh.trunks[frozenset({"r1", "r2"})].ends if node is mesh.routers["r1"])
    full.is_output_blocked = True
    mesh.send(producer, message("second"))
    mesh.run(0.3)
    lose_brokers(mesh)
    full.is_output_blocked = False
    mesh.run(1)
    assert texts(consumer) == ["first"]
    start_brokers(mesh)
    mesh.run_until(lambda: texts(consumer) == ["first", "second"])

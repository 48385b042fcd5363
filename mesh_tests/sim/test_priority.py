"""Where room is short, do deliveries of an address with a higher priority go first, at every router on the way?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.line import end_towards, line
from mesh_tests.sim.walk import data_section
from wire.endpoint import Endpoint, EndpointSettings

ADDRESSES = {
    "urgent": {"type": "anycast", "priority": 9},
    "bulk": {"type": "anycast", "priority": 0},
    "alarm": {"type": "multicast", "priority": 9},
    "news": {"type": "multicast", "priority": 0},
    "rpc": "anycast",
}
OF_A_KIND = [("urgent", "bulk"), ("urgent", "rpc"), ("rpc", "bulk"), ("alarm", "news")]
BODY = bytes(10_000)
FRAME_BYTES = EndpointSettings("any").max_frame_bytes
BUFFERED_COUNT = 10
"""Deliveries of that size which an engine that has room is handed before it has none."""


@pytest.mark.parametrize(("address", "priority"), [("urgent", 9), ("news", 0), ("rpc", 4)])
def test_an_address_has_its_priority_where_it_enters_and_where_it_leaves_the_mesh(address: str, priority: int):
    mesh = line(addresses=ADDRESSES)
    receiver = mesh.client("r3").receiver(address)
    sender = mesh.client("r1").sender(address)
    mesh.send(sender)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    for router in ("r1", "r3"):
        snapshot = mesh.routers[router].snapshot()
        assert {each.address: each.priority for each in snapshot.addresses} == {address: priority}


class Journal(list[bytes]):
    """What a receiver saw, noted in one list for all receivers."""

    def __init__(self, name: str, arrivals: list[str]) -> None:
        self.name = name
        self.arrivals = arrivals

    def append(self, message: bytes) -> None:
        super().append(message)
        self.arrivals.append(self.name)


class Answers(dict[int, Any]):
    """The outcomes of one sender, noted in one list for all senders."""

    def __init__(self, name: str, answered: list[str]) -> None:
        self.name = name
        self.answered = answered

    def setdefault(self, number: int, outcome: Any = None) -> Any:
        if number not in self:
            self.answered.append(self.name)
        return super().setdefault(number, outcome)


def noted(client: SimClient, address: str, arrivals: list[str]) -> SimReceiver:
    receiver = client.receiver(address, credit=1000)
    receiver.messages = Journal(address, arrivals)
    return receiver


def waiting_at(mesh: SimMesh, full: Endpoint | None, low: str, high: str, egress: str) -> list[str]:
    """200 deliveries to ``low`` find ``full`` without room, then 50 to ``high``; who arrived, in order, when it had."""
    arrivals: list[str] = []
    consumer = mesh.client(egress)
    receivers = [noted(consumer, address, arrivals) for address in (low, high)]
    senders = [mesh.client("r1").sender(address) for address in (low, high)]
    for sender in senders:
        mesh.run_until(lambda sender=sender: sender.link.credit >= 250)
    full = full or consumer.pipe.ends[1][1]
    full.is_output_blocked = True
    for sender, count in zip(senders, (200, 50), strict=True):
        for _ in range(count):
            sender.send(BODY)
        mesh.run(0.5)
    full.is_output_blocked = False
    mesh.run_until(lambda: all(not sender.open for sender in senders))
    assert [len(receiver.messages) for receiver in receivers] == [200, 50]
    return arrivals


def passed(arrivals: list[str], high: str) -> int:
    """Deliveries that came before the last one of ``high``, and are not of it."""
    last = len(arrivals) - 1 - arrivals[::-1].index(high)
    return last + 1 - arrivals.count(high)


@pytest.mark.parametrize(("high", "low"), OF_A_KIND)
def test_with_a_full_connection_to_a_consumer_the_higher_priority_overtakes(high: str, low: str, egress: str):
    arrivals = waiting_at(line(addresses=ADDRESSES), None, low, high, egress)
    assert passed(arrivals, high) <= BUFFERED_COUNT


@pytest.mark.parametrize(("high", "low"), OF_A_KIND)
@egress_at("r2", "r3")
def test_with_a_full_trunk_at_the_ingress_the_higher_priority_overtakes(high: str, low: str, egress: str):
    mesh = line(addresses=ADDRESSES)
    arrivals = waiting_at(mesh, end_towards(mesh, "r1", "r2"), low, high, egress)
    assert passed(arrivals, high) <= BUFFERED_COUNT


@pytest.mark.parametrize(("high", "low"), OF_A_KIND)
def test_with_a_full_trunk_at_a_transit_router_the_higher_priority_overtakes(high: str, low: str):
    mesh = line(addresses=ADDRESSES)
    arrivals = waiting_at(mesh, end_towards(mesh, "r2", "r3"), low, high, "r3")
    assert passed(arrivals, high) <= BUFFERED_COUNT


def test_what_piles_up_before_a_full_consumer_leaves_the_window_to_another_priority():
    mesh = line(addresses=ADDRESSES)
    full, free = mesh.client("r3"), mesh.client("r3")
    full.receiver("bulk", credit=1000)
    receiver = free.receiver("urgent")
    senders = [mesh.client("r1").sender(address) for address in ("bulk", "urgent")]
    for sender in senders:
        mesh.run_until(lambda sender=sender: sender.link.credit > 1)
    full.pipe.ends[1][1].is_output_blocked = True
    for _ in range(min(250, senders[0].link.credit)):
        senders[0].send(bytes(3 * FRAME_BYTES))  # more frames than the windows of all routers have room for
    mesh.run(0.5)
    senders[1].send(b"urgent")
    mesh.run_until(lambda: receiver.messages == [b"urgent"], 0.1)


def test_a_queue_has_its_priority_on_the_way_to_its_broker(tmp_path: Path):
    topology: dict[str, Any] = {
        "mesh": "line",
        "node_tls": False,
        "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r3"]}},
        "addresses": {"jobs": {"type": "queue", "priority": 9}, "logs": {"type": "queue", "priority": 0}},
    }
    mesh = SimMesh(topology, tmp_path)
    mesh.converge()
    for full in (end_towards(mesh, "r1", "r2"), end_towards(mesh, "r2", "r3")):
        senders = {address: mesh.client("r1").sender(address) for address in ("logs", "jobs")}
        answered: list[str] = []
        for address, sender in senders.items():
            sender.outcomes = Answers(address, answered)
            mesh.run_until(lambda sender=sender: sender.link.credit > 50)
        full.is_output_blocked = True
        for sender in senders.values():
            for _ in range(50):
                sender.send(data_section(1, len(BODY)))
            mesh.run(0.5)
        full.is_output_blocked = False
        mesh.run_until(lambda answered=answered: len(answered) == 100)
        assert passed(answered, "jobs") <= BUFFERED_COUNT

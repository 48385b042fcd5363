"""Does a consumer of an anycast that drains get what is on the wire already, before the answer? [2.6.7]

The producers and circuits that hold credit are asked. Those that do not answer within 200 ms lose that credit.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line

WAIT_S = 0.2
DELAY_S = 0.001


class Deaf(SimClient):
    """Like many libraries, its senders do not answer a drain."""

    def on_flow(self, link: Any) -> None: ...


def idle(mesh: SimMesh, router: str, address: str = "rpc", kind: type[SimClient] = SimClient) -> SimSender:
    """A producer that holds credit."""
    sender = mesh.client(router, kind=kind).sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    return sender


def consumer(mesh: SimMesh, router: str, address: str = "rpc") -> SimReceiver:
    receiver = mesh.client(router).receiver(address, credit=0)
    receiver.tops_up = False
    mesh.run(0.1)
    return receiver


def drain(mesh: SimMesh, receiver: SimReceiver, credit: int = 5) -> float:
    """How long the answer took."""
    began = mesh.now
    receiver.link.request_drain(credit)
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
    receiver.link.end_drain()
    assert receiver.link.credit == 0
    return mesh.now - began


@pytest.mark.parametrize("address", ["rpc", "near"])
@pytest.mark.parametrize("sooner_s", [0.0, 0.0002, 0.0005, 0.0009])
def test_a_transfer_on_the_wire_comes_before_the_answer(egress: str, address: str, sooner_s: float):
    """The producer sends when the drain has not reached it; its transfer comes to the router after the drain."""
    mesh = line()
    receiver = consumer(mesh, egress, address)
    sender = idle(mesh, "r1", address)
    receiver.link.request_drain(5)
    mesh.flush()
    mesh.run(sooner_s)
    sender.send(b"on the wire")
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
    assert receiver.messages == [b"on the wire"]
    assert receiver.link.credit == 0


def test_transfers_of_several_producers_come_before_the_answer():
    mesh = line()
    receiver = consumer(mesh, "r2")
    senders = [idle(mesh, router) for router in ("r1", "r1", "r2", "r3")]
    receiver.link.request_drain(5)
    mesh.flush()
    for sender in senders:
        sender.send(b"x")
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
    assert len(receiver.messages) == len(senders)


def test_no_producer_that_holds_credit_is_waited_for_in_vain(egress: str):
    mesh = line()
    receiver = consumer(mesh, egress)
    sender = idle(mesh, "r1")
    assert drain(mesh, receiver) < 40 * DELAY_S
    # It is asked for what it has once more: the consumer is still there.
    mesh.run_until(lambda: sender.link.credit == 1, 0.1)


def test_without_producers_the_answer_comes_at_once(egress: str):
    mesh = line()
    assert drain(mesh, consumer(mesh, egress)) < 10 * DELAY_S


def test_one_that_does_not_answer_loses_its_credit_and_is_waited_for_no_longer(egress: str):
    mesh = line()
    receiver = consumer(mesh, egress)
    sender = idle(mesh, "r1", kind=Deaf)
    seen: list[int] = []
    began = mesh.now
    receiver.link.request_drain(5)
    while receiver.link.is_drain_pending:
        mesh.run(0.001)
        seen.append(sender.link.credit)
    assert WAIT_S / 2 <= mesh.now - began <= WAIT_S + 20 * DELAY_S
    mesh.run(0.1)
    # The next drain finds no credit of before that nobody knows of.
    receiver.link.end_drain()
    number = mesh.send(sender)
    mesh.run(0.1)
    assert receiver.messages == []
    receiver.link.grant(1)
    mesh.run_until(lambda: number in sender.outcomes, 1)
    assert receiver.messages == [b"x"]


def test_two_consumers_that_drain_at_once_are_both_answered(egress: str):
    mesh = line()
    receivers = [consumer(mesh, egress), consumer(mesh, "r1")]
    sender = idle(mesh, "r1")
    for receiver in receivers:
        receiver.link.request_drain(5)
    mesh.flush()
    sender.send(b"x")
    mesh.run_until(lambda: not any(receiver.link.is_drain_pending for receiver in receivers), 1)
    assert sorted(len(receiver.messages) for receiver in receivers) == [0, 1]


@pytest.mark.parametrize("who", ["producer", "consumer"])
def test_whoever_leaves_meanwhile_is_not_waited_for(egress: str, who: str):
    mesh = line()
    receiver = consumer(mesh, egress)
    other = consumer(mesh, egress)
    sender = idle(mesh, "r1", kind=Deaf)
    receiver.link.request_drain(5)
    mesh.run(0.02)
    assert receiver.link.is_drain_pending
    client = next(client for client in mesh.nodes if (sender if who == "producer" else receiver) in _ends(client))
    mesh.cut(client.pipe)
    if who == "producer":
        mesh.run_until(lambda: not receiver.link.is_drain_pending, 0.1)
    mesh.run(0.5)
    assert drain(mesh, other) <= WAIT_S + 20 * DELAY_S


def _ends(client: Any) -> list[Any]:
    return [*client.senders, *client.receivers] if isinstance(client, SimClient) else []


def test_a_drain_that_the_consumer_takes_back_leaves_producers_their_credit(egress: str):
    mesh = line()
    receiver = consumer(mesh, egress)
    sender = idle(mesh, "r1", kind=Deaf)
    receiver.link.request_drain(5)
    mesh.run(0.02)
    receiver.link.end_drain()
    receiver.link.grant(5)
    mesh.run(0.02)
    assert sender.link.credit > 0
    number = mesh.send(sender)
    mesh.run_until(lambda: number in sender.outcomes, 1)
    assert receiver.messages == [b"x"]


def test_a_drain_behind_an_edge_router_waits_for_what_is_on_the_wire():
    mesh = SimMesh(
        {
            "mesh": "edges",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}, "e1": {"mode": "edge", "connect": ["r1"]}},
            "addresses": {"rpc": "anycast"},
        }
    )
    mesh.converge()
    for at, to in (("e1", "r2"), ("r2", "e1"), ("e1", "e1")):
        receiver, sender = consumer(mesh, to), idle(mesh, at)
        receiver.link.request_drain(5)
        mesh.flush()
        sender.send(b"x")
        mesh.run_until(lambda receiver=receiver: not receiver.link.is_drain_pending, 1)
        assert receiver.messages == [b"x"]
        for end in (receiver, sender):
            end.link.close()
        mesh.flush()
        mesh.run(0.5)

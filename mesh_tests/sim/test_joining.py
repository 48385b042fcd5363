"""A consumer of a multicast whose attach was answered: does it get everything that is sent from then on?

The answer waits until each router with producers has the consumer's router in its tree, `path_wait_s` at most. Where
nobody has producers, or all circuits are there, the answer comes at once.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line, ring
from router.circuits.circuits import Circuits
from wire.errors import AmqpError
from wire.link import Link
from wire.message import Message, encode

COUNT = 20
PATH_WAIT_S = 2.0
ANSWER_S = 0.01
"""Of an attach that waits for nothing."""


def far(mesh: SimMesh) -> SimMesh:
    """Its routers are: clients hear an answer long before other routers hear any news."""
    for pipe in mesh.trunks.values():
        pipe.delay_s = 0.02
    return mesh


def consumer(mesh: SimMesh, router: str, address: str = "prices") -> SimReceiver:
    return mesh.client(router).receiver(address, credit=100)


def producer(mesh: SimMesh, router: str, address: str | None = "prices") -> SimSender:
    sender = mesh.client(router).sender(address)
    mesh.run_until(lambda: sender.link.is_open)
    if address is None:
        sender.send(encode(Message("first", to="prices")))
        mesh.run(0.1)
    return sender


def answer(mesh: SimMesh, receiver: SimReceiver, within_s: float = PATH_WAIT_S + 0.1) -> float:
    """How long the answer to the attach took."""
    began = mesh.now
    while not receiver.link.is_open:
        assert mesh.now < began + within_s
        mesh.run(0.0005)
    return mesh.now - began


def send(mesh: SimMesh, sender: SimSender, *, settled: bool) -> None:
    """All at once, as far as there is credit."""
    assert sender.link.credit >= COUNT
    for _ in range(COUNT):
        sender.send(encode(Message("x", to="prices")), settled=settled)
    mesh.run(1)


@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("name", ["prices", None], ids=["address of the link", "anonymous"])
@pytest.mark.parametrize(("first", "second"), [("r2", "r3"), ("r3", "r2"), ("r1", "r3"), ("r3", "r3"), ("r2", "r1")])
def test_the_second_consumer_gets_all_that_is_sent_after_its_answer(
    first: str, second: str, name: str | None, settled: bool
):
    mesh = far(line())
    one = consumer(mesh, first)
    sender = producer(mesh, "r1", name)
    mesh.run_until(lambda: sender.link.credit >= COUNT)
    mesh.run(0.5)  # all routers have heard of it
    if settled:
        mesh.send(sender, encode(Message("x", to="prices")), settled=True)
        mesh.run(1)
    before = len(one.messages)
    other = consumer(mesh, second)
    answer(mesh, other)
    send(mesh, sender, settled=settled)
    assert (len(one.messages) - before, len(other.messages)) == (COUNT, COUNT)


@pytest.mark.parametrize("second", ["r1", "r2", "r3", "r4"])
def test_it_gets_what_producers_at_all_routers_send(second: str):
    mesh = far(ring())
    consumer(mesh, "r3")
    senders = [producer(mesh, router) for router in ("r1", "r2", "r3", "r4")]
    mesh.run(0.5)
    other = consumer(mesh, second)
    answer(mesh, other)
    for sender in senders:
        for _ in range(COUNT):
            sender.send(b"x")
    mesh.run(1)
    assert len(other.messages) == len(senders) * COUNT


def test_the_first_consumer_of_all_gets_everything_too():
    mesh = far(line())
    sender = producer(mesh, "r1")
    receiver = consumer(mesh, "r3")
    answer(mesh, receiver)
    for _ in range(COUNT):
        mesh.send(sender)
    mesh.run(0.5)
    assert len(receiver.messages) == COUNT


def test_what_a_producer_behind_an_edge_sends_reaches_it():
    routers: dict[str, Any] = {"r1": {"connect": ["r2"]}, "r2": {}, "e1": {"mode": "edge", "connect": ["r1"]}}
    mesh = SimMesh({"mesh": "edges", "node_tls": False, "routers": routers, "addresses": {"prices": "multicast"}})
    mesh.converge()
    far(mesh)
    consumer(mesh, "r1")
    sender = producer(mesh, "e1")
    mesh.run(0.5)
    other = consumer(mesh, "r2")
    answer(mesh, other)
    send(mesh, sender, settled=False)
    assert len(other.messages) == COUNT


@pytest.mark.parametrize("address", ["prices", "rpc"])
def test_nothing_is_waited_for_where_nobody_else_has_producers(egress: str, address: str):
    mesh = far(line())
    producer(mesh, egress, address)
    if address == "rpc":
        producer(mesh, "r1", address)
    mesh.run(0.5)
    assert answer(mesh, consumer(mesh, egress, address)) < ANSWER_S


def test_nothing_is_waited_for_where_the_circuits_are_there():
    mesh = far(line())
    producer(mesh, "r1")
    answer(mesh, consumer(mesh, "r3"))
    mesh.run(0.5)
    assert answer(mesh, consumer(mesh, "r3")) < ANSWER_S
    assert answer(mesh, consumer(mesh, "r2")) < ANSWER_S, "the tree passes through it"


def test_nothing_is_waited_for_once_the_producers_left_or_cannot_be_reached():
    mesh = far(line())
    senders = [producer(mesh, "r1"), producer(mesh, "r2")]
    mesh.run(0.5)
    senders[0].link.close()
    mesh.flush()
    mesh.cut_trunk("r2", "r3")
    mesh.run(0.5)
    assert answer(mesh, consumer(mesh, "r3")) < ANSWER_S
    assert answer(mesh, consumer(mesh, "r1")) < PATH_WAIT_S


def test_where_a_circuit_cannot_be_made_it_is_waited_for_no_longer_than_path_wait_s(monkeypatch: pytest.MonkeyPatch):
    mesh = far(line())
    producer(mesh, "r1")
    mesh.run(0.5)
    make = Circuits.sender

    def refuse(circuits: Circuits, spec: Any, hop: str) -> Link:
        if spec.address.name == "prices":
            raise AmqpError("amqpmesh:path-lost", "not now")
        return make(circuits, spec, hop)

    monkeypatch.setattr(Circuits, "sender", refuse)
    took_s = answer(mesh, consumer(mesh, "r3"))
    assert PATH_WAIT_S - 0.1 < took_s < PATH_WAIT_S + 0.1


@pytest.mark.parametrize("way", ["detach", "close", "loss"])
def test_one_that_leaves_before_the_answer_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, way: str):
    mesh = far(line())
    producer(mesh, "r1")
    mesh.run(0.5)
    monkeypatch.setattr(Circuits, "sender", lambda *_: (_ for _ in ()).throw(AmqpError("amqpmesh:path-lost", "no")))
    client: SimClient = mesh.client("r3")
    receiver = client.receiver("prices", credit=10)
    mesh.run(0.1)
    assert not receiver.link.is_open
    if way == "loss":
        mesh.cut(client.pipe)
    else:
        getattr(receiver.link, way)()
        mesh.flush()
    mesh.run(0.5)
    assert not mesh.routers["r3"].snapshot().addresses
    mesh.run(PATH_WAIT_S)
    assert not mesh.routers["r3"].snapshot().addresses


@pytest.mark.parametrize("pause_s", [0.0, 0.001, 0.01, 0.03, 0.05, 0.1])
def test_one_that_comes_as_the_last_one_leaves_gets_all_after_its_answer(pause_s: float):
    """The circuit that is there still may be about to be closed."""
    mesh = far(line())
    consumer(mesh, "r2")
    last = consumer(mesh, "r3")
    sender = producer(mesh, "r1")
    for _ in range(5):
        mesh.send(sender)
    mesh.run_until(lambda: sender.link.credit >= COUNT)
    mesh.run(0.5)
    last.link.close()
    mesh.flush()
    mesh.run(pause_s)
    other = consumer(mesh, "r3")
    answer(mesh, other)
    send(mesh, sender, settled=False)
    assert len(other.messages) == COUNT


@pytest.mark.parametrize("address", ["prices", None])
def test_the_first_message_of_a_new_producer_reaches_consumers_that_came_while_there_was_none(
    address: str | None,
) -> None:
    mesh = ring()
    first = consumer(mesh, "r2")
    sender = producer(mesh, "r1", address)
    mesh.send(sender, encode(Message("1", to="prices")))
    mesh.run_until(lambda: len(first.messages) > 0)
    sender.link.close()
    mesh.run(1)
    second = consumer(mesh, "r4")
    mesh.run(1)
    new = mesh.client("r1").sender(address)
    mesh.send(new, encode(Message("2", to="prices")))
    mesh.run(1)
    assert encode(Message("2", to="prices")) in first.messages
    assert encode(Message("2", to="prices")) in second.messages

"""What does a sender without an address hear, wherever the takers of its messages are? One to three routers."""

from __future__ import annotations

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_broker_routes import bodies
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode

CAPACITY = 20
BUDGET_BYTES = 64 << 20


def to(address: str, body: str = "x") -> bytes:
    return Message(address=address, body=body).encode()


@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
def test_it_has_credit_though_nobody_takes_anything(router: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    sender = mesh.client(router).sender(None)
    mesh.run_until(lambda: sender.link.credit == CAPACITY)


def test_its_credit_comes_back_as_its_messages_are_settled(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    mesh.client(egress).receiver("rpc", credit=CAPACITY)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    for _ in range(5 * CAPACITY):
        mesh.send(sender, to("rpc"))
    mesh.run_until(lambda: not sender.open)
    assert list(sender.outcomes.values()) == [ACCEPTED] * 5 * CAPACITY


def test_what_waits_for_one_address_is_overtaken_by_what_goes_to_others(egress: str):
    mesh = line()
    slow, quick = mesh.client(egress).receiver("work.slow", credit=0), mesh.client(egress).receiver("work.quick")
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    for body in ("1", "2", "3"):
        mesh.send(sender, to("work.slow", body))
    mesh.send(sender, to("work.quick"))
    mesh.run_until(lambda: sender.outcomes == {4: ACCEPTED})
    assert slow.messages == []
    slow.link.grant(10)
    mesh.run_until(lambda: not sender.open)
    assert slow.messages == [to("work.slow", body) for body in ("1", "2", "3")], "in order"
    assert quick.messages == [to("work.quick")]


def test_its_first_message_to_a_multicast_is_for_all_wherever_they_are(egress: str):
    mesh = line()
    near, far = mesh.client("r1").receiver("prices"), mesh.client(egress).receiver("prices")
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    mesh.send(sender, to("prices"))
    mesh.run_until(lambda: not sender.open)
    assert near.messages == far.messages == [to("prices")]


def test_it_sends_no_more_than_its_capacity_while_nothing_moves(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    for _ in range(50):
        while sender.link.credit > 0:
            sender.send(to("rpc"))
        mesh.run(0.01)
    assert sender.count == CAPACITY
    receiver.link.grant(100)
    mesh.run_until(lambda: not sender.open)


def test_a_large_message_that_nobody_takes_is_released_and_stops_nobody(egress: str):
    mesh = line()
    sender = mesh.client("r1").sender(None)
    mesh.client(egress).receiver("work.other")
    mesh.run(0.5)
    large = to("rpc", "x" * 300_000)
    sender.begin()
    sender.link.send(large[:100_000])
    mesh.run(0.5)
    sender.link.send(large[100_000:])
    sender.link.finish()
    mesh.send(sender, to("work.other"))
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED, 2: ACCEPTED})


def test_a_large_message_aborted_while_it_waits_for_a_consumer_stops_nobody(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    delivery = sender.begin()
    sender.link.send(to("rpc", "x" * 300_000)[:100_000])
    mesh.run(0.5)
    sender.abort(delivery)
    mesh.send(sender, to("rpc", "whole"))
    receiver.link.grant(10)
    mesh.run_until(lambda: sender.outcomes == {2: ACCEPTED})
    assert receiver.messages == [to("rpc", "whole")]


def test_addresses_that_it_sends_nothing_to_any_more_are_forgotten():
    mesh = line(1)
    sender = mesh.client("r1").sender(None)
    consumer = mesh.client("r1").receiver("work.0", credit=10_000)
    mesh.run(0.5)
    for number in range(2500):
        mesh.send(sender, to(f"work.{number}"))
        mesh.send(sender, to("work.0"))
    mesh.run_until(lambda: not sender.open)
    assert len(consumer.messages) == 2501
    assert len(mesh.routers["r1"].snapshot().addresses) <= 1001


def test_one_address_may_be_spelled_in_several_ways(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=10)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    spellings = ("rpc", "amqp://r1/rpc", "rpc", "amqp://r1/rpc", "/rpc")
    for spelling in spellings:
        mesh.send(sender, to(spelling))
    mesh.run_until(lambda: not sender.open)
    assert receiver.messages == [to(spelling) for spelling in spellings[:4]]
    assert sender.outcomes[5].kind is OutcomeCode.REJECTED


def test_a_message_whose_consumer_left_is_released(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=10)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)
    mesh.send(sender, to("rpc"))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    receiver.link.close()
    mesh.run(0.5)
    mesh.send(sender, to("rpc"))
    mesh.run_until(lambda: sender.outcomes.get(2) == RELEASED, 3)


def test_a_dead_dynamic_address_is_released_at_once(egress: str):
    mesh = line()
    client = mesh.client(egress)
    replies = client.receiver(None, dynamic=True)
    mesh.run_until(lambda: replies.link.is_open)
    address = replies.link.remote_source.address
    sender = mesh.client("r1").sender(None)
    mesh.send(sender, to(address))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.cut(client.pipe)
    mesh.run(0.5)
    mesh.send(sender, to(address))
    mesh.run_until(lambda: sender.outcomes.get(2) == RELEASED, 0.1)


@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("nowhere", "amqp:not-found"),
        ("closed", "amqp:not-found"),
        ("rpc", "amqp:unauthorized-access"),
        ("", "amqp:invalid-field"),
    ],
)
def test_unknown_closed_and_forbidden_addresses_are_rejected_with_a_sentence(router: str, address: str, condition: str):
    mesh = line(users={"anonymous": {"send": ["work.#", "closed", "nowhere"], "receive": ["#"]}})
    mesh.client("r3").receiver("work.other")
    sender = mesh.client(router).sender(None)
    mesh.run(0.5)
    mesh.send(sender, to(address))
    mesh.send(sender, to("work.other"))
    mesh.run_until(lambda: not sender.open)
    refused, passed = sender.outcomes.values()
    assert refused.kind is OutcomeCode.REJECTED
    assert refused.error.condition == condition
    assert refused.error.description
    assert passed == ACCEPTED
    assert sender.error is None


def test_what_a_router_holds_of_many_of_them_is_bounded():
    mesh = line(1)
    receiver = mesh.client("r1").receiver("rpc", credit=0)
    senders = [mesh.client("r1").sender(None) for _ in range(6)]
    mesh.run(0.5)
    message = to("rpc", "x" * 60_000)
    for sender in senders:
        for _ in range(sender.link.credit):
            sender.send(message)
            mesh.run(0.002)
    mesh.run(0.1)
    assert sum(len(sender.open) for sender in senders) == BUDGET_BYTES // len(message)
    assert {outcome for sender in senders for outcome in sender.outcomes.values()} == {RELEASED}
    receiver.link.grant(2000)
    mesh.run_until(lambda: not any(sender.open for sender in senders))
    assert len(receiver.messages) == BUDGET_BYTES // len(message)
    mesh.send(senders[-1], message)
    mesh.run_until(lambda: not senders[-1].open)
    assert len(receiver.messages) == BUDGET_BYTES // len(message) + 1


# Two routers are connected to the broker
@pytest.fixture
def known_to_two(tmp_path: Path) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "known-to-two",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r1", "r3"]}},
            "addresses": {"orders": "queue", "news": "topic"},
        },
        tmp_path,
    )
    mesh.converge()
    mesh.run(1)
    return mesh


@pytest.mark.parametrize("address", ["orders", "news"])
@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
def test_what_goes_to_a_broker_comes_there_in_order(known_to_two: SimMesh, router: str, address: str):
    receiver = known_to_two.client("r1").receiver(address, credit=1000)
    known_to_two.run(1)
    sender = known_to_two.client(router).sender(None)
    for number in range(60):
        known_to_two.send(sender, to(address, str(number)))
        if number % 7 == 0:
            known_to_two.run(0.0005)
    known_to_two.run_until(lambda: len(receiver.messages) == 60)
    assert bodies(receiver) == list(range(60))


def test_what_goes_to_a_broker_takes_another_way_when_the_own_connection_is_lost(
    known_to_two: SimMesh, monkeypatch: pytest.MonkeyPatch
):
    mesh = known_to_two
    sender = mesh.client("r1").sender(None)
    mesh.send(sender, to("orders"))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    monkeypatch.setattr(mesh, "on_cut", lambda pipe: None)  # nobody dials again
    for pipe in list(mesh.pipes):
        if {id(node) for node, _ in pipe.ends} == {id(mesh.routers["r1"]), id(mesh.brokers["b1"])}:
            mesh.cut(pipe)
    mesh.send(sender, to("orders"))
    mesh.run_until(lambda: sender.outcomes.get(2) == ACCEPTED, 1.0)

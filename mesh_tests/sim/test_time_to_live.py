"""Does a message say how long it is still to live, and is it delivered to nobody after that? [3.2.1], [3.2.4]"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_broker import WALL_OFFSET_S
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.line import line
from mesh_tests.sim.test_answered_modes import TOPOLOGY, is_answered
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, OutcomeCode
from wire.delivery_address import with_delivery_address
from wire.sections import scan

TTL = 100.0


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[SimMesh]:
    made = SimMesh(TOPOLOGY, tmp_path)
    made.converge()
    made.run_until(lambda: all(broker.is_up for node in made.routers.values() for broker in node.snapshot().brokers))
    made.run(0.2)
    yield made
    made.close()


def encoded(body: str = "x", **fields: Any) -> bytes:
    return bytes(Message(body=body, **fields).encode())


def assert_only_ttl_differs(received: bytes, sent: bytes, ttl_s: float, within_s: float = 0.2) -> None:
    found, before = scan(received), scan(sent)
    assert found.ttl_s == pytest.approx(ttl_s, abs=within_s)
    assert len(received) == len(sent)
    assert received[found.header_end :] == sent[before.header_end :]
    header, told = received[: found.header_end], sent[: before.header_end]
    assert sum(one != other for one, other in zip(header, told, strict=True)) <= 4


def stored(mesh: SimMesh, address: str, message: bytes) -> None:
    sender = mesh.client("r1").sender(address)
    mesh.send(sender, message)
    mesh.run_until(lambda: list(sender.outcomes.values()) == [ACCEPTED])


# At brokers
@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize("body", ["x", "x" * 200_000], ids=["small", "large"])
def test_a_queue_sends_the_ttl_that_is_left(mesh: SimMesh, address: str, body: str) -> None:
    message = encoded(body, ttl=TTL, priority=7)
    stored(mesh, address, message)
    mesh.run(30)
    receiver = mesh.client("r2").receiver(address)
    mesh.run_until(lambda: bool(receiver.messages))
    assert_only_ttl_differs(receiver.messages[0], message, TTL - 30)


def test_a_small_ttl_stays_as_small_as_it_was_encoded(mesh: SimMesh) -> None:
    header = b"\x00\x53\x70\xc0\x08\x05\x42\x50\x04\x52\xfa\x42\x43"  # ttl as a smalluint, 250 ms
    message = header + encoded()[scan(encoded()).header_end :]
    assert scan(message).ttl_s == 0.25
    stored(mesh, "orders", message)
    mesh.run(0.1)
    receiver = mesh.client("r1").receiver("orders")
    mesh.run_until(lambda: bool(receiver.messages))
    assert_only_ttl_differs(receiver.messages[0], message, 0.14, 0.04)


def test_a_message_without_a_ttl_comes_as_it_was_sent(mesh: SimMesh) -> None:
    message = encoded(expiry_time=mesh.now + WALL_OFFSET_S + 50)
    stored(mesh, "orders", message)
    mesh.run(10)
    receiver = mesh.client("r1").receiver("orders")
    mesh.run_until(lambda: bool(receiver.messages))
    assert receiver.messages[0] == message


def test_a_message_that_comes_again_sends_the_ttl_that_is_left(mesh: SimMesh) -> None:
    stored(mesh, "orders", encoded(ttl=TTL))
    first = mesh.client("r1").receiver("orders", credit=1)
    first.accepts = False
    mesh.run_until(lambda: bool(first.held))
    mesh.run(20)
    first.settle(MODIFIED_FAILED)
    second = mesh.client("r1").receiver("orders")
    first.link.close()
    mesh.run_until(lambda: bool(second.messages))
    head = scan(second.messages[0])
    assert head.ttl_s == pytest.approx(TTL - 20, abs=0.5)
    assert head.delivery_count == 1


def test_a_broker_that_restarts_knows_what_is_left(mesh: SimMesh) -> None:
    message = encoded(ttl=TTL)
    stored(mesh, "orders", message)
    mesh.run(10)
    mesh.kill_broker("b1")
    mesh.run(20)
    mesh.start_broker("b1")
    receiver = mesh.client("r1").receiver("orders")
    mesh.run_until(lambda: bool(receiver.messages))
    assert_only_ttl_differs(receiver.messages[0], message, TTL - 30, 1)


def test_each_subscription_is_told_what_is_left_when_its_message_goes(mesh: SimMesh) -> None:
    early = mesh.client("r1").receiver("news.today")
    late = mesh.client("r1").receiver("news.#", credit=0)
    mesh.run_until(lambda: is_answered(early) and is_answered(late))
    message = encoded(ttl=TTL)
    stored(mesh, "news.today", message)
    mesh.run(40)
    late.link.grant(1)
    mesh.run_until(lambda: bool(late.messages))
    assert_only_ttl_differs(early.messages[0], message, TTL)
    assert_only_ttl_differs(late.messages[0], with_delivery_address(message, b"news.today"), TTL - 40)


@pytest.mark.parametrize(
    ("fields", "lives_s"),
    [({"expiry": 10}, 10), ({"expiry": 10, "ttl": 50}, 10), ({"expiry": 50, "ttl": 10}, 10), ({"expiry": -1}, 0)],
    ids=["expiry", "expiry before ttl", "ttl before expiry", "expiry is past"],
)
@pytest.mark.parametrize("address", ["orders", "sharded", "news.today"])
def test_a_broker_expires_by_the_earlier_of_both(
    mesh: SimMesh, address: str, fields: dict[str, float], lives_s: float
) -> None:
    receiver = mesh.client("r1").receiver("news.#" if address == "news.today" else address, credit=0)
    mesh.run_until(lambda: is_answered(receiver))
    receiver.tops_up = False
    given = {key: value for key, value in fields.items() if key != "expiry"}
    message = encoded(expiry_time=mesh.now + WALL_OFFSET_S + fields["expiry"], **given)
    stored(mesh, address, message)
    if lives_s:
        mesh.run(lives_s - 1)
        receiver.link.grant(1)
        mesh.run_until(lambda: len(receiver.messages) == 1)
        stored(mesh, address, encoded(expiry_time=mesh.now + WALL_OFFSET_S + 10))
    mesh.run(11)
    receiver.link.grant(10)
    mesh.run(1)
    assert len(receiver.messages) == (1 if lives_s else 0)


# At routers
def held(mesh: SimMesh, egress: str, address: str, message: bytes, **how: Any) -> tuple[SimReceiver, SimSender]:
    """The message waits somewhere between its producer at r1 and a consumer that has no credit."""
    receiver = mesh.client(egress).receiver(address, credit=0)
    sender = mesh.client("r1").sender(how.pop("target", address))
    mesh.send(sender, message, **how)
    return receiver, sender


@egress_at("r1", "r2", "r3")
@pytest.mark.parametrize("address", ["rpc", "near", "again", "prices"])
@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "pre-settled"])
def test_what_routers_held_has_the_ttl_that_is_left(egress: str, address: str, is_settled: bool) -> None:
    message = encoded(ttl=5.0, priority=9)
    receiver, _ = held(mesh := line(), egress, address, message, settled=is_settled)
    mesh.run(0.05 if address == "prices" else 1.5)
    receiver.link.grant(1)
    mesh.run_until(lambda: bool(receiver.messages))
    assert_only_ttl_differs(receiver.messages[0], message, 4.95 if address == "prices" else 3.5, 0.1)


@egress_at("r1", "r2", "r3")
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("body", ["x", "x" * 50_000, "x" * 300_000], ids=["small", "of two frames", "large"])
@pytest.mark.parametrize("is_anonymous", [False, True], ids=["a sender", "an anonymous sender"])
def test_what_routers_held_beyond_its_ttl_is_delivered_to_nobody(
    egress: str, address: str, body: str, is_anonymous: bool
) -> None:
    how = {"target": None} if is_anonymous else {}
    message = encoded(body, ttl=0.5, address=address)
    receiver, sender = held(mesh := line(), egress, address, message, **how)
    mesh.run(1)
    receiver.link.grant(10)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1].kind is OutcomeCode.RELEASED
    assert receiver.messages == []
    again = encoded("again", ttl=5.0, address=address)
    mesh.send(sender, again)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    assert_only_ttl_differs(receiver.messages[0], again, 5.0)


@egress_at("r1", "r3")
@pytest.mark.parametrize("expiry", [-5.0, 0.5])
def test_what_routers_held_beyond_its_absolute_expiry_time_is_delivered_to_nobody(egress: str, expiry: float) -> None:
    mesh = line()
    message = encoded(expiry_time=mesh.now + WALL_OFFSET_S + expiry)
    receiver, sender = held(mesh, egress, "rpc", message)
    mesh.run(1)
    receiver.link.grant(10)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1].kind is OutcomeCode.RELEASED
    assert receiver.messages == []


def test_what_a_consumer_released_is_offered_to_the_next_with_the_ttl_that_is_left(egress: str) -> None:
    mesh = line()
    first = mesh.client(egress).receiver("rpc", credit=1)
    second = mesh.client(egress).receiver("rpc", credit=0)
    first.accepts = False
    sender = mesh.client("r1").sender("rpc")
    message = encoded(ttl=5.0)
    mesh.send(sender, message)
    mesh.run_until(lambda: bool(first.held))
    mesh.run(2)
    second.link.grant(1)
    mesh.run(0.2)
    first.settle(RELEASED)
    mesh.run_until(lambda: bool(second.messages))
    assert_only_ttl_differs(second.messages[0], message, 2.8)


def test_messages_that_wait_one_behind_the_other_have_each_its_own_age() -> None:
    mesh = line(1)
    receiver = mesh.client("r1").receiver("rpc", credit=0)
    senders = [mesh.client("r1").sender("rpc") for _ in range(4)]
    anonymous = mesh.client("r1").sender(None)
    for sender in senders:
        mesh.send(sender, encoded("each", ttl=100.0))
        mesh.send(anonymous, encoded("anonymous", ttl=100.0, address="rpc"))
        mesh.run(0.4)
    receiver.link.grant(10)
    mesh.run_until(lambda: len(receiver.messages) == 8)
    left = sorted(scan(each).ttl_s or 0 for each in receiver.messages)
    assert left == pytest.approx([98.4, 98.4, 98.8, 98.8, 99.2, 99.2, 99.6, 99.6], abs=0.1)


def test_what_was_held_and_given_back_does_not_age_what_comes_later() -> None:
    mesh = line(1)
    client = mesh.client("r1")
    receiver = client.receiver("rpc", credit=0)
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, encoded(ttl=100.0))
    receiver.link.close()
    client._settle()
    mesh.run_until(lambda: bool(sender.outcomes))
    mesh.run(10)
    again = mesh.client("r1").receiver("rpc")
    message = encoded(ttl=5.0)
    mesh.send(sender, message)
    mesh.run_until(lambda: bool(again.messages))
    assert again.messages == [message]


@pytest.mark.parametrize("place", ["r1", "r2"], ids=["at the broker's router", "at another router"])
def test_what_a_closed_window_held_beyond_its_ttl_is_delivered_to_nobody(mesh: SimMesh, place: str) -> None:
    client = mesh.client(place, window_frames=2)
    receiver = client.receiver("orders", credit=30)
    receiver.reads = False
    sender = mesh.client("r1").sender("orders")
    for _ in range(30):
        mesh.send(sender, encoded("x" * 20_000, ttl=10.0))
    mesh.run(20)
    client.resume(receiver)
    mesh.run(2)
    assert len(receiver.messages) < 10
    later = encoded("later", ttl=10.0)
    mesh.send(sender, later)
    mesh.run_until(lambda: any(len(each) == len(later) for each in receiver.messages))

"""Does a link to a queue or topic that stands still stop another link of its client, with which it shares sessions?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.leftovers import QUIET_S, leftovers
from wire.delivery import ACCEPTED
from wire.link import RECEIVE_FIRST, SEND_SETTLED
from wire.terminus import DistributionMode, Durability, Expiry

AT = pytest.mark.parametrize("broker_at", ["r1", "r2", "r3"])


def message(size: int) -> bytes:
    """A message with a body of ``size`` bytes."""
    return Message(body=bytes(size)).encode()


SMALL = message(100)
SIZES = pytest.mark.parametrize(("size", "count"), [(60_000, 250), (100_000, 150), (3_000_000, 5)])
"""Bytes of a message, and how many: far more than the window of a session takes."""


def mesh_of(folder: Path, broker_at: str) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {"b1": {"data": "b1", "routers": [broker_at]}},
            "addresses": {
                "q.#": {"type": "queue", "broker": "b1"},
                "urgent.#": {"type": "queue", "broker": "b1", "priority": 9},
                "t.#": {"type": "topic", "broker": "b1"},
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run(0.5)
    return mesh


def fill(mesh: SimMesh, address: str, size: int, count: int) -> None:
    client = mesh.client("r2", "filler")
    sender = client.sender(address)
    for _ in range(count):
        mesh.run_until(lambda: sender.link.credit > 0, 30)
        sender.send(message(size))
        mesh.run(0.002)
    mesh.run_until(lambda: not sender.open, 60)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    client.endpoint.close()
    mesh.run(0.1)


def other_session(client: SimClient) -> None:
    """The next links of ``client`` are in a new session."""
    client._session = None


def is_served(mesh: SimMesh, sender: SimSender, receiver: SimReceiver, within_s: float = 0.5) -> bool:
    """Whether a message goes round within much less time than deliveries without credit are kept."""
    before, sent = len(receiver.messages), sender.count
    sender.send(SMALL)
    mesh.run(within_s)
    return len(receiver.messages) == before + 1 and sender.outcomes.get(sent + 1) == ACCEPTED


def sessions_of(mesh: SimMesh, client: SimClient) -> set[Any]:
    """The sessions at the broker that have links of ``client``."""
    name = client.endpoint.settings.container_id
    return {
        link.session for endpoint in mesh.brokers["b1"]._endpoints for link in endpoint.links if f"{name}|" in link.name
    }


@AT
def test_links_share_a_session_only_with_links_of_their_own_session_and_priority(tmp_path: Path, broker_at: str):
    mesh = mesh_of(tmp_path, broker_at)
    one, two = mesh.client("r1", "one"), mesh.client("r1", "two")
    for client in (one, two):
        for number in range(3):
            client.receiver(f"q.{number}")
            client.sender(f"q.{number}")
    mesh.run(0.5)
    assert (len(sessions_of(mesh, one)), len(sessions_of(mesh, two))) == (1, 1)
    assert not sessions_of(mesh, one) & sessions_of(mesh, two)
    other_session(one)
    one.receiver("q.1")
    mesh.run(0.5)
    assert len(sessions_of(mesh, one)) == 2
    one.receiver("urgent.1")
    one.sender("urgent.2")
    mesh.run(0.5)
    assert len(sessions_of(mesh, one)) == 3


@AT
@SIZES
def test_a_consumer_that_stops_reading_stops_no_other_session_of_its_client_and_no_producer(
    tmp_path: Path, broker_at: str, size: int, count: int
):
    """It has credit outstanding, and its own session takes no more. Other consumers in that session have to wait."""
    mesh = mesh_of(tmp_path, broker_at)
    fill(mesh, "q.stalled", size, count)
    client = mesh.client("r1", "client", window_frames=4, max_frame_bytes=16384)
    stalled = client.receiver("q.stalled", credit=1000)
    stalled.reads = False
    producer = client.sender("q.moving")
    other_session(client)
    moving = client.receiver("q.moving", credit=10)
    mesh.run(3)
    for _ in range(3):
        assert is_served(mesh, producer, moving)
    assert not stalled.messages
    client.resume(stalled)
    mesh.run_until(lambda: len(stalled.messages) == count, 60)


@AT
@SIZES
def test_a_consumer_that_takes_its_credit_back_stops_no_consumer_of_its_session(
    tmp_path: Path, broker_at: str, size: int, count: int
):
    mesh = mesh_of(tmp_path, broker_at)
    fill(mesh, "q.stopped", size, count)
    client = mesh.client("r1", "client")
    stopped, moving = client.receiver("q.stopped", credit=0), client.receiver("q.moving", credit=10)
    producer = mesh.client("r1", "producer").sender("q.moving")
    mesh.run(0.5)
    stopped.tops_up = False
    _cross(mesh, client, stopped, count)
    for _ in range(3):
        assert is_served(mesh, producer, moving, 3.0 if size > 1_000_000 else 0.5)
    got = len(stopped.messages)
    assert got < count
    stopped.tops_up = True
    stopped.link.grant(10)
    mesh.flush()
    mesh.run_until(lambda: len(stopped.messages) == count, 60)


@AT
@pytest.mark.parametrize("kind", ["pre-settled", "browser"])
def test_nor_does_one_whose_deliveries_nobody_can_give_back(tmp_path: Path, broker_at: str, kind: str):
    mesh = mesh_of(tmp_path, broker_at)
    fill(mesh, "q.stopped", 60_000, 250)
    client = mesh.client("r1", "client")
    asked: dict[str, Any] = {"modes": (SEND_SETTLED, RECEIVE_FIRST)}
    if kind == "browser":
        asked = {"distribution_mode": DistributionMode.COPY}
    stopped, moving = client.receiver("q.stopped", credit=0, **asked), client.receiver("q.moving", credit=10)
    producer = mesh.client("r1", "producer").sender("q.moving")
    mesh.run(0.5)
    _cross(mesh, client, stopped, 250)
    for _ in range(3):
        assert is_served(mesh, producer, moving)
    assert len(stopped.messages) < 250
    stopped.link.grant(1000)
    mesh.flush()
    mesh.run_until(lambda: len(stopped.messages) == 250, 60)


def _cross(mesh: SimMesh, client: SimClient, receiver: SimReceiver, credit: int) -> None:
    """Grant ``credit``, and take it back as soon as the first deliveries come: the others are on their way."""
    at_router = _router_end(mesh, client)
    receiver.link.grant(credit)
    mesh.flush()
    at_router.is_output_blocked = True
    mesh.run(1)
    receiver.link.set_credit(0)
    mesh.flush()
    mesh.run(0.05)
    at_router.is_output_blocked = False
    mesh.run(0.2)


def _router_end(mesh: SimMesh, client: SimClient) -> Any:
    (found,) = [
        other for pipe in mesh.pipes for (_, one), (_, other) in (pipe.ends, pipe.ends[::-1]) if one is client.endpoint
    ]
    return found


@AT
def test_half_a_large_message_stops_no_link_of_its_session(tmp_path: Path, broker_at: str):
    mesh = mesh_of(tmp_path, broker_at)
    client = mesh.client("r1", "client")
    halting, producer, consumer = client.sender("q.large"), client.sender("q.small"), client.receiver("q.small")
    large = client.receiver("q.large")
    mesh.run_until(lambda: halting.link.credit > 0 and producer.link.credit > 0)
    body = message(6_000_000)
    halting.begin()
    for start in range(0, 5_000_000, 50_000):
        halting.link.send(body[start : start + 50_000])
        mesh.flush()
        mesh.run(0.002)
    for _ in range(3):
        assert is_served(mesh, producer, consumer)
    halting.link.send(body[5_000_000:])
    halting.link.finish()
    mesh.flush()
    mesh.run_until(lambda: len(large.messages) == 1, 10)
    assert large.messages == [body]


@AT
def test_a_large_message_on_its_way_to_a_consumer_lets_others_of_its_session_through(tmp_path: Path, broker_at: str):
    mesh = mesh_of(tmp_path, broker_at)
    fill(mesh, "q.large", 20_000_000, 1)
    client = mesh.client("r1", "client", window_frames=8, max_frame_bytes=16384)
    large, small = client.receiver("q.large", credit=0), client.receiver("q.small", credit=100)
    producer = mesh.client("r1", "producer").sender("q.small")
    mesh.run_until(lambda: producer.link.credit > 50)
    large.link.grant(1)
    mesh.flush()
    mesh.run_until(lambda: len(large.partial) > 100_000, 10)
    for _ in range(20):
        producer.send(SMALL)
    mesh.run_until(lambda: len(small.messages) == 20, 10)
    assert not large.messages
    mesh.run_until(lambda: len(large.messages) == 1, 60)


@AT
@pytest.mark.parametrize("way", ["close", "detach"])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_link_may_come_again_under_its_name_while_the_first_is_ending(
    tmp_path: Path, broker_at: str, way: str, lasting: bool
):
    mesh = mesh_of(tmp_path, broker_at)
    client = mesh.client("r1", "client")
    terminus: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER} if lasting else {}
    other = client.receiver("t.x", credit=100)
    mesh.run(0.2)
    last = client.receiver("t.x", credit=10, name="again", **terminus)
    for wait_s in (0, 0, 0.0005, 0.001, 0.002, 0.004, 0):
        mesh.run(wait_s)
        getattr(last.link, way)()
        last = client.receiver("t.x", credit=10, name="again", **terminus)
    mesh.run_until(lambda: last.link.is_open, 5)
    mesh.run(0.5)
    assert client.closed is None
    assert (last.error, other.error) == (None, None)
    sender = mesh.client("r1", "producer").sender("t.x")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(body="1").encode())
    mesh.run_until(lambda: len(last.messages) == 1 and len(other.messages) == 1, 5)


@AT
def test_links_of_a_shared_session_come_back_after_the_loss_of_their_broker_or_end_with_their_client(
    tmp_path: Path, broker_at: str
):
    mesh = mesh_of(tmp_path, broker_at)
    client = mesh.client("r1", "client")
    receivers = [client.receiver(f"q.{number}") for number in range(100)]
    sender = client.sender("q.7")
    mesh.run_until(lambda: all(each.link.is_open for each in (*receivers, sender)), 10)
    mesh.kill_broker("b1")
    mesh.run(1)
    mesh.start_broker("b1")
    mesh.run_until(lambda: sender.link.credit > 0, 15)
    mesh.run_until(lambda: len(sessions_of(mesh, client)) == 2, 15)
    mesh.run(1)
    assert all(each.error is None for each in (*receivers, sender))
    assert is_served(mesh, sender, receivers[7])
    client.begin().end()
    mesh.run(1)
    assert sessions_of(mesh, client) == set()
    client.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []

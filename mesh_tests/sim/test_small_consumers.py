"""Through routers, a consumer whose link takes small messages only neither loses nor counts what it cannot have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from router.routes.egress_route import BrokerSide
from wire.delivery import ACCEPTED, OutcomeCode
from wire.link import Link

LARGE, SMALL = "L" * 5000, "s"
HUGE = "H" * 300_000
MOST = 1000
ROUTERS = pytest.mark.parametrize("router", ["r1", "r2", "r3", "e1"])
"""The brokers are at r1; e1 is an edge of r3."""
TOO_LARGE = "amqp:link:message-size-exceeded"


def mesh_of(folder: Path) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {
                "r1": {},
                "r2": {"connect": ["r1"]},
                "r3": {"connect": ["r2"]},
                "e1": {"mode": "edge", "connect": ["r3"]},
            },
            "brokers": {name: {"data": name, "routers": ["r1"]} for name in ("b1", "b2")},
            "addresses": {
                "orders": {"type": "queue", "broker": "b1"},
                "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                "news.#": {"type": "topic", "broker": "b1"},
                "work": "anycast",
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run(0.5)
    return mesh


def fill(mesh: SimMesh, address: str, *bodies: str) -> None:
    sender = mesh.client("r2", "producer").sender(address)
    for body in bodies:
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(body=body).encode())
    mesh.run_until(lambda: len(sender.open) == 0)
    assert set(sender.outcomes.values()) == {ACCEPTED}


def small(mesh: SimMesh, router: str, address: str) -> SimReceiver:
    return mesh.client(router, "small").receiver(address, 20, max_message_bytes=MOST)


def seen(receiver: SimReceiver) -> list[tuple[str, int]]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append((message.body[:1], message.delivery_count))
    return sorted(found)


@ROUTERS
@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize("body", [LARGE, HUGE], ids=["large", "huge"])
def test_a_queue_of_large_messages_stays_as_it_is(tmp_path: Path, router: str, address: str, body: str) -> None:
    mesh = mesh_of(tmp_path)
    fill(mesh, address, *[body] * 6)
    consumer = small(mesh, router, address)
    mesh.run_until(lambda: consumer.error is not None, 60)
    assert consumer.error.condition == TOO_LARGE
    assert consumer.messages == []
    other = mesh.client(router, "large").receiver(address, 20)
    mesh.run_until(lambda: len(other.messages) == 6, 60)
    assert seen(other) == [(body[0], 0)] * 6


@ROUTERS
@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_small_messages_pass_large_ones_that_others_take(tmp_path: Path, router: str, address: str) -> None:
    mesh = mesh_of(tmp_path)
    fill(mesh, address, *[LARGE, SMALL] * 4)
    consumer = small(mesh, router, address)
    mesh.run_until(lambda: len(consumer.messages) == 4, 60)
    assert seen(consumer) == [("s", 0)] * 4
    other = mesh.client("r3", "large").receiver(address, 20)
    mesh.run_until(lambda: len(other.messages) == 4, 90)
    assert seen(other) == [("L", 0)] * 4


@ROUTERS
@pytest.mark.parametrize("body", [LARGE, HUGE], ids=["large", "huge"])
def test_a_broker_that_sends_it_all_the_same_gets_it_back_uncounted(
    tmp_path: Path, router: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    link_of = BrokerSide._link

    def link_without_limit(*arguments: Any) -> Link:
        far = link_of(*arguments)
        far.set_max_message_bytes(0)
        return far

    monkeypatch.setattr(BrokerSide, "_link", staticmethod(link_without_limit))
    mesh = mesh_of(tmp_path)
    fill(mesh, "orders", *[body] * 6)
    consumer = small(mesh, router, "orders")
    mesh.run_until(lambda: consumer.error is not None, 60)
    assert consumer.error.condition == TOO_LARGE
    assert (consumer.messages, consumer.aborted) == ([], 0)
    other = mesh.client(router, "large").receiver("orders", 20)
    mesh.run_until(lambda: len(other.messages) == 6, 60)
    first, *rest = seen(other)
    assert {count for _, count in (first, *rest)} <= {0, 1}
    # What else was under way when the router ended the broker's link is in doubt; what went back is not.
    assert first == (body[0], 0)


def send(mesh: SimMesh, sender: SimSender, body: str) -> Any:
    mesh.run_until(lambda: sender.link.credit > 0, 60)
    number = sender.send(Message(body=body).encode())
    mesh.run_until(lambda: number in sender.outcomes, 60)
    return sender.outcomes[number]


@pytest.mark.parametrize("large_at", ["r1", "r3", "e1"])
@pytest.mark.parametrize("small_at", ["r1", "r2", "r3", "e1"])
def test_an_anycast_message_goes_to_a_router_where_somebody_takes_it(
    tmp_path: Path, small_at: str, large_at: str
) -> None:
    mesh = mesh_of(tmp_path)
    small(mesh, small_at, "work")
    other = mesh.client(large_at, "large").receiver("work", 20)
    mesh.run(1)
    sender = mesh.client("r2", "producer").sender("work")
    for _ in range(4):
        assert send(mesh, sender, LARGE) == ACCEPTED
    assert len(other.messages) == 4


@pytest.mark.parametrize("small_at", ["r1", "r2", "r3", "e1"])
def test_an_anycast_message_that_nobody_takes_is_rejected_with_the_reason(tmp_path: Path, small_at: str) -> None:
    mesh = mesh_of(tmp_path)
    consumer = small(mesh, small_at, "work")
    mesh.run(1)
    sender = mesh.client("r2", "producer").sender("work")
    outcome = send(mesh, sender, LARGE)
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error.condition == TOO_LARGE
    assert send(mesh, sender, SMALL) == ACCEPTED
    assert consumer.error is None


@ROUTERS
def test_a_larger_consumer_that_comes_late_gets_what_went_back(tmp_path: Path, router: str) -> None:
    mesh = mesh_of(tmp_path)
    consumer = small(mesh, router, "sharded")
    fill(mesh, "sharded", SMALL, LARGE, SMALL)
    mesh.run_until(lambda: len(consumer.messages) == 2, 60)
    other = mesh.client("r3", "large").receiver("sharded", 20)
    mesh.run_until(lambda: len(other.messages) == 1, 90)
    assert seen(other) == [("L", 0)]

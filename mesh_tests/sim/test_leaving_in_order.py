"""A consumer that leaves in order gives back what it has no outcome for, and nobody counts that as an attempt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from wire import delivery as deliveries
from wire.delivery import ACCEPTED
from wire.errors import AmqpError
from wire.outcome import Outcome, OutcomeCode
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
FAILED = Outcome(OutcomeCode.MODIFIED, delivery_failed=True)
BROKEN = AmqpError("amqp:internal-error", "something went wrong")
ROUTERS = pytest.mark.parametrize("router", ["r1", "r2", "r3", "e1"])
ADDRESSES = pytest.mark.parametrize("address", ["orders", "sharded", "news.eu"])
"""The brokers are at r1; e1 is an edge of r3."""


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
                "orders": {"type": "queue", "broker": "b1", "dead_letter": "dead", "max_delivery_attempts": 3},
                "dead": {"type": "queue", "brokers": ["b1", "b2"]},
                "sharded": {
                    "type": "queue",
                    "brokers": ["b1", "b2"],
                    "dead_letter": "dead",
                    "max_delivery_attempts": 3,
                },
                "news.#": {"type": "topic", "broker": "b1", "dead_letter": "dead", "max_delivery_attempts": 3},
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run(0.5)
    return mesh


def consumer(mesh: SimMesh, router: str, address: str, credit: int = 20) -> SimReceiver:
    """It keeps what it gets."""
    receiver = mesh.client(router, "app").receiver(
        address, credit, name="reader", **(DURABLE if "news" in address else {})
    )
    receiver.accepts = False
    mesh.run_until(lambda: receiver.link.is_open or receiver.error)
    return receiver


def hold(mesh: SimMesh, receiver: SimReceiver, count: int) -> None:
    mesh.run_until(lambda: len(receiver.held) == count)


def fill(mesh: SimMesh, address: str, count: int) -> None:
    sender = mesh.client("r2", "producer").sender(address)
    for number in range(count):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(body=str(number)).encode())
    mesh.run_until(lambda: len(sender.open) == 0)
    assert set(sender.outcomes.values()) == {ACCEPTED}


def counts(receiver: SimReceiver) -> list[int]:
    found = []
    for _, data in receiver.held:
        message = Message()
        message.decode(data)
        found.append(message.delivery_count)
    return found


def dead(mesh: SimMesh) -> int:
    queues = [queue for broker in mesh.brokers.values() for queue in broker.snapshot().queues]
    return sum(queue.queue.available_count for queue in queues if queue.address == "dead")


def client_of(mesh: SimMesh, receiver: SimReceiver) -> SimClient:
    (client,) = [each for each in mesh.nodes if isinstance(each, SimClient) and receiver in each.receivers]
    return client


def detach(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.detach()


def close_link(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.detach() if receiver.address == "news.eu" else receiver.link.close()


def end_session(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.session.end()


def close_connection(mesh: SimMesh, receiver: SimReceiver, error: AmqpError | None = None) -> None:
    receiver.link.endpoint.close(error)
    mesh.run(0.1)
    mesh.cut(client_of(mesh, receiver).pipe)


def detach_with_an_error(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.detach(BROKEN)


def close_connection_with_an_error(mesh: SimMesh, receiver: SimReceiver) -> None:
    close_connection(mesh, receiver, BROKEN)


def lose_connection(mesh: SimMesh, receiver: SimReceiver) -> None:
    mesh.cut(client_of(mesh, receiver).pipe)


Way = Callable[[SimMesh, SimReceiver], None]


@ROUTERS
@ADDRESSES
@pytest.mark.parametrize("leave", [detach, close_link, end_session, close_connection])
def test_what_has_no_outcome_is_given_back_uncounted(tmp_path: Path, router: str, address: str, leave: Way) -> None:
    if address == "news.eu" and leave is end_session:
        pytest.skip("whether a subscription stays when its session ends is tested elsewhere")
    mesh = mesh_of(tmp_path)
    if address == "news.eu":
        consumer(mesh, router, address, 1).link.detach()
        mesh.run(0.3)
    fill(mesh, address, 6)
    for _ in range(4):
        receiver = consumer(mesh, router, address)
        hold(mesh, receiver, 6)
        assert counts(receiver) == [0] * 6
        leave(mesh, receiver)
        mesh.run(1)
    assert dead(mesh) == 0


@ROUTERS
@ADDRESSES
@pytest.mark.parametrize("leave", [detach_with_an_error, close_connection_with_an_error, lose_connection])
def test_what_is_in_doubt_counts_as_an_attempt(tmp_path: Path, router: str, address: str, leave: Way) -> None:
    mesh = mesh_of(tmp_path)
    if address == "news.eu":
        consumer(mesh, router, address, 1).link.detach()
        mesh.run(0.3)
    fill(mesh, address, 6)
    for seen in range(2):
        receiver = consumer(mesh, router, address)
        hold(mesh, receiver, 6)
        assert counts(receiver) == [seen] * 6
        leave(mesh, receiver)
        mesh.run(1)


@ROUTERS
@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_only_the_message_that_failed_becomes_a_dead_letter(tmp_path: Path, router: str, address: str) -> None:
    mesh = mesh_of(tmp_path)
    fill(mesh, address, 6)
    for _ in range(3):
        receiver = consumer(mesh, router, address)
        hold(mesh, receiver, 6)
        (first,) = [held for held in receiver.held if body_of(held[1]) == "0"]
        receiver.held.remove(first)
        receiver.answer(*first, FAILED)
        mesh.run(0.2)
        receiver.link.close()
        mesh.run(1)
    assert dead(mesh) == 1
    receiver = consumer(mesh, router, address)
    hold(mesh, receiver, 5)
    assert counts(receiver) == [0] * 5


@ROUTERS
def test_what_another_consumer_here_can_have_goes_there_uncounted(tmp_path: Path, router: str) -> None:
    mesh = mesh_of(tmp_path)
    fill(mesh, "sharded", 4)
    first = consumer(mesh, router, "sharded")
    hold(mesh, first, 4)
    second = consumer(mesh, router, "sharded")
    first.link.close()
    hold(mesh, second, 4)
    assert counts(second) == [0] * 4


@ROUTERS
@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_an_outcome_that_was_given_stands(tmp_path: Path, router: str, address: str) -> None:
    mesh = mesh_of(tmp_path)
    fill(mesh, address, 4)
    receiver = consumer(mesh, router, address)
    hold(mesh, receiver, 4)
    held, receiver.held = receiver.held, []
    for delivery, _ in held[:2]:
        deliveries.set_outcome(delivery, ACCEPTED)  # not settled
    receiver.link.endpoint.mark_dirty()
    receiver.link.close()
    mesh.run(1)
    again = consumer(mesh, router, address)
    mesh.run(1)
    assert counts(again) == [0, 0]


def body_of(data: bytes) -> Any:
    message = Message()
    message.decode(data)
    return message.body

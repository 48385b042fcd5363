"""Clients at different routers that share a subscription: who gets what, and what waits for them?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED
from wire.link import IncomingLink
from wire.terminus import NULL_TERMINUS, Durability, Expiry, target

COUNT = 200
CREDIT = 10
BUSY_S = 30.0

TOPOLOGY = """
mesh: sharing
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r2]}
addresses:
  topic.#: topic
  brief.#: {type: topic, subscription_expiry_s: 1}
"""

KEPT = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
# Container-ids of the two clients, capabilities and link names: as JMS clients with one id and without any have them.
KINDS = {
    "of one container-id": (("app", "app"), ("topic", "shared"), ("work", "work")),
    "global": (("one", "two"), ("topic", "shared", "global"), ("work|global", "work|global")),
}


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def producer(mesh, stack):
    return stack.enter_context(WireClient(mesh.port("r2"), container_id="producer"))


def _broker_is_up_for_s(mesh: RunningMesh) -> float:
    """Since when the router of the broker is connected to it, by the clock of the router's log."""
    (*_, up) = (event["ts"] for event in mesh.log("r2") if event["event"] == "broker_up")
    return (datetime.now(UTC) - datetime.fromisoformat(up)).total_seconds()


def _publish(producer: WireClient, address: str, bodies: range, others: list[WireClient]) -> None:
    """Each accepted, while the ``others`` receive."""
    sender = producer.sender(address)
    numbers = []
    for body in bodies:
        wait_with([producer, *others], lambda: sender.credit > 0, "credit", BUSY_S)
        numbers.append(producer.send(sender, body))
        _settle(others)
    wait_with([producer, *others], lambda: all(n in producer.outcomes for n in numbers), "their outcomes", BUSY_S)
    assert {producer.outcomes[number] for number in numbers} == {ACCEPTED}


def _settle(clients: list[WireClient]) -> None:
    for client in clients:
        client.settled += [each.body for each in client.settle_all()]
        for link in client.endpoint.links:
            if link.credit < CREDIT:
                link.grant(CREDIT)


class Sharer(WireClient):
    """A client that consumes."""

    def __init__(self, port: int, address: str, container_id: str, name: str, capabilities, **terminus) -> None:
        super().__init__(port, container_id=container_id)
        self.settled: list[int] = []
        self.link = self.receiver(address, CREDIT, name=name, capabilities=capabilities, **terminus)


def _attach(mesh, stack, address, kind, **terminus) -> list[Sharer]:
    ids, capabilities, names = KINDS[kind]
    return [
        stack.enter_context(Sharer(mesh.port(router), address, container_id, name, capabilities, **terminus))
        for router, container_id, name in zip(("r1", "r3"), ids, names, strict=True)
    ]


def _wait_settled(pair: list[Sharer], count: int) -> None:
    def are_here() -> bool:
        _settle(pair)
        return sum(len(sharer.settled) for sharer in pair) >= count

    wait_with(pair, are_here, f"{count} messages", BUSY_S)


def _subscriptions(mesh, address):
    """Subscriber, consumers, messages."""
    queues = mesh.snapshot("b1")["node"]["queues"]
    return [
        (each["subscriber"], each["queue"]["consumer_count"], each["queue"]["available_count"])
        for each in queues
        if each["address"] == address
    ]


def _recall(client: WireClient, name: str) -> IncomingLink:
    """As JMS does to unsubscribe: without a source."""
    link = client.begin().receiver(name)
    link.set_source(NULL_TERMINUS)
    link.set_target(target(None))
    link.open()
    return link


@pytest.mark.parametrize("kind", KINDS)
def test_two_clients_at_two_routers_share_a_durable_subscription_and_its_backlog(mesh, stack, producer, kind):
    address = f"topic.{kind.replace(' ', '-')}"
    pair = _attach(mesh, stack, address, kind, **KEPT)
    _publish(producer, address, range(COUNT), pair)
    _wait_settled(pair, COUNT)
    assert sorted(pair[0].settled + pair[1].settled) == list(range(COUNT))
    assert all(sharer.settled for sharer in pair)
    for sharer in pair:
        sharer.link.detach()
        sharer.wait(lambda link=sharer.link: link.is_gone, "the answer to the detach")
    subscriber = "app|work (shared)" if len(set(KINDS[kind][0])) == 1 else "work (shared, global)"
    wait_until(lambda: _subscriptions(mesh, address) == [(subscriber, 0, 0)], BUSY_S, "an idle subscription")
    _publish(producer, address, range(COUNT, 2 * COUNT), [])
    again = _attach(mesh, stack, address, kind, **KEPT)
    _wait_settled(again, COUNT)
    assert sorted(again[0].settled + again[1].settled) == list(range(COUNT, 2 * COUNT))
    assert all(sharer.settled for sharer in again)


def test_a_sharer_whose_connection_is_lost_leaves_its_messages_to_the_other(mesh, stack, producer):
    address = "topic.lost"
    ids, capabilities, names = KINDS["of one container-id"]
    lost = Sharer(mesh.port("r1"), address, ids[0], names[0], capabilities, **KEPT)
    _publish(producer, address, range(CREDIT), [])
    lost.wait_arrived(CREDIT)
    stays = stack.enter_context(Sharer(mesh.port("r3"), address, ids[1], names[1], capabilities, **KEPT))
    lost.kill()
    _wait_settled([stays], CREDIT)
    assert sorted(stays.settled) == list(range(CREDIT))


@pytest.mark.parametrize("kind", KINDS)
def test_sharers_keep_their_links_and_nothing_is_lost_when_the_broker_is_killed(mesh, stack, producer, kind):
    address = f"topic.killed.{kind.replace(' ', '-')}"
    pair = _attach(mesh, stack, address, kind, **KEPT)
    _publish(producer, address, range(COUNT), [])
    wait_with(pair, lambda: all(len(sharer.arrived) == CREDIT for sharer in pair), "what they have credit for", BUSY_S)
    # The router dials a broker at once whose connection lived that long, and after a pause one that was lost again and
    # again: links are kept for 10 s only, and a busy machine needs half of that to start a broker.
    wait_until(
        lambda: _broker_is_up_for_s(mesh) > 5.0, BUSY_S, "a connection to the broker that counts as a stable one"
    )
    mesh.kill("b1")

    def has_all_come() -> bool:
        _settle(pair)
        return {*pair[0].settled, *pair[1].settled} == set(range(COUNT))

    wait_with(pair, has_all_come, "all that was accepted", BUSY_S)


def test_a_shared_durable_subscription_is_unsubscribed_through_a_router_when_nobody_consumes(mesh, stack):
    address = "topic.unsubscribed"
    ids, capabilities, names = KINDS["global"]
    sharer = stack.enter_context(Sharer(mesh.port("r1"), address, ids[0], names[0], capabilities, **KEPT))
    refused = stack.enter_context(WireClient(mesh.port("r3"), container_id="anybody"))
    link = _recall(refused, "work|global")
    detached = refused.wait_detached(link)
    assert detached.error is not None
    assert detached.error.condition == "amqp:resource-locked"
    sharer.link.detach()
    sharer.wait(lambda: sharer.link.is_gone, "the answer to the detach")
    again = stack.enter_context(WireClient(mesh.port("r3"), container_id="anybody"))
    link = _recall(again, "work|global")
    again.wait(lambda: again.is_established(link), "the source")
    link.close()
    again.wait(lambda: link.is_gone, "the answer to the close")
    wait_until(lambda: _subscriptions(mesh, address) == [], BUSY_S, "its end")


def test_a_durable_subscription_that_nobody_uses_expires(mesh, stack):
    client = stack.enter_context(WireClient(mesh.port("r1"), container_id="reader"))
    link = client.receiver("brief.news", name="mine", **KEPT)
    assert _subscriptions(mesh, "brief.news") == [("sharing|reader|mine", 1, 0)]
    link.detach()
    client.wait(lambda: link.is_gone, "the answer to the detach")
    wait_until(lambda: _subscriptions(mesh, "brief.news") == [], BUSY_S, "its end")
    (told,) = [line for line in mesh.log("b1") if line["event"] == "subscription_expired"]
    assert (told["address"], told["subscriber"]) == ("brief.news", "sharing|reader|mine")

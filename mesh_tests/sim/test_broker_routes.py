"""Queues and topics through routers to real brokers, in virtual time: link routes, waypoints, what survives a loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import set_transactional
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, OutcomeCode
from wire.terminus import Durability, Expiry

RING: dict[str, Any] = {
    "r1": {"connect": ["r2", {"to": "r4", "cost": 5}]},
    "r2": {"connect": ["r3"]},
    "r3": {"connect": ["r4"]},
    "r4": {},
}


def mesh_of(
    folder: Path, routers: dict[str, Any] = RING, jobs: dict[str, Any] | None = None, **brokers: list[str]
) -> SimMesh:
    """A mesh with these brokers, each at the named routers; ``jobs`` declares the address `jobs.#`."""
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": routers,
            "brokers": {name: {"data": name, "routers": at} for name, at in brokers.items()},
            "addresses": {
                "orders": {"type": "queue", "broker": "b1"},
                "sharded": {"type": "queue", "brokers": list(brokers)},
                "news.#": {"type": "topic", "broker": "b1"},
                "weather": {"type": "topic", "broker": "b1", "broker_address": "sky"},
                **({} if jobs is None else {"jobs.#": jobs}),
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(0.2)
    return mesh


@pytest.mark.parametrize("address", ["orders", "sharded", "news.a"])
def test_a_delivery_of_a_transaction_is_rejected_before_a_broker_has_it(tmp_path: Path, address: str):
    mesh = mesh_of(tmp_path, b1=["r3"])
    sender, receiver = mesh.client("r1").sender(address), mesh.client("r2").receiver(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    set_transactional(sender.begin())
    sender.link.send(Message(body="no").encode())
    sender.link.finish()
    mesh.run_until(lambda: 1 in sender.outcomes)
    assert sender.outcomes[1].kind is OutcomeCode.REJECTED
    assert sender.outcomes[1].error.condition == "amqp:not-implemented"
    mesh.run_until(lambda: sender.link.credit > 0)
    send_all(mesh, sender, 1)
    mesh.run_until(lambda: receiver.messages)
    assert len(receiver.messages) == 1


def send_all(mesh: SimMesh, sender: SimSender, count: int, first: int = 0) -> None:
    for index in range(first, first + count):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(body=str(index)).encode())
    mesh.run_until(lambda: len(sender.open) == 0)


def bodies(receiver: SimReceiver) -> list[int]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append(int(message.body))
    return found


def test_a_queue_keeps_messages_until_a_consumer_at_another_router_comes(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    sender = mesh.client("r1", "p").sender("orders")
    send_all(mesh, sender, 20)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    receiver = mesh.client("r4", "c").receiver("orders", credit=50)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert bodies(receiver) == list(range(20))


def test_a_queue_client_goes_on_when_the_transit_router_dies(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    receiver = mesh.client("r1", "c").receiver("orders", credit=50)
    sender = mesh.client("r1", "p").sender("orders")
    send_all(mesh, sender, 10)
    mesh.kill("r2")
    send_all(mesh, sender, 10, first=10)
    mesh.run_until(lambda: set(bodies(receiver)) == set(range(20)))
    assert (receiver.error, sender.error) == (None, None)


def test_no_two_messages_that_a_consumer_holds_have_one_tag(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    receiver = mesh.client("r1", "c").receiver("orders", credit=50)
    receiver.accepts = False
    send_all(mesh, mesh.client("r4", "p").sender("orders"), 5)
    mesh.run_until(lambda: len(receiver.held) == 5)
    mesh.kill("r2")
    mesh.run_until(lambda: len(receiver.held) == 10)
    assert len({deliveries.tag(delivery) for delivery, _ in receiver.held}) == 10


@pytest.mark.parametrize("address", ["news.eu", "weather"])
def test_a_subscription_that_is_recalled_by_its_name_alone_says_its_address_as_the_mesh_calls_it(
    tmp_path: Path, address: str
):
    mesh = mesh_of(tmp_path, b1=["r3"])
    client = mesh.client("r1", "me")
    subscriber = client.receiver(address, durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER, name="sub")
    mesh.run_until(lambda: subscriber.link.is_open)
    subscriber.link.detach()
    mesh.run(0.2)
    recalled = client.receiver(None, name="sub")
    mesh.run_until(lambda: recalled.link.is_open)
    assert recalled.link.remote_source.address == address


def test_the_end_of_no_subscription_is_refused(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    unsubscriber = mesh.client("r1", "me").receiver(None)
    mesh.run_until(lambda: unsubscriber.error is not None)
    assert unsubscriber.error.condition == "amqp:not-found"
    assert unsubscriber.link.remote_source.is_null


def test_queue_clients_go_on_when_the_broker_restarts_and_nothing_accepted_is_lost(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    receiver = mesh.client("r1", "c").receiver("orders", credit=50)
    sender = mesh.client("r4", "p").sender("orders")
    send_all(mesh, sender, 10)
    mesh.kill_broker("b1")
    mesh.run(1)
    mesh.start_broker("b1")
    send_all(mesh, sender, 10, first=10)
    mesh.run_until(lambda: set(bodies(receiver)) == set(range(20)))
    assert (receiver.error, sender.error) == (None, None)


def test_a_route_to_a_broker_that_does_not_come_back_ends_with_a_condition(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    receiver = mesh.client("r1", "c").receiver("orders")
    sender = mesh.client("r1", "p").sender("orders")
    mesh.run_until(lambda: receiver.link.is_open and sender.link.credit > 0)
    mesh.kill_broker("b1")
    mesh.run(9)
    assert (receiver.error, sender.error) == (None, None)
    mesh.run(2)
    assert receiver.error.condition == sender.error.condition == "amqp:link:detach-forced"


@pytest.mark.parametrize(
    "terminus",
    [{"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}, {"expiry": Expiry.NEVER}],
    ids=["durable", "never expires"],
)
def test_a_subscriber_that_means_to_comes_back_at_another_router(tmp_path: Path, egress: str, terminus: dict[str, Any]):
    mesh = mesh_of(tmp_path, b1=[egress])
    first = mesh.client("r1", "me")
    subscriber = first.receiver("news.sport", credit=5, **terminus)
    mesh.run_until(lambda: subscriber.link.is_open)
    mesh.cut(first.pipe)
    mesh.run(0.5)
    sender = mesh.client("r2", "p").sender("news.sport")
    send_all(mesh, sender, 5)
    again = mesh.client("r4", "me").receiver("news.sport", credit=50, **terminus)
    mesh.run_until(lambda: bodies(again) == list(range(5)))


def test_a_sharded_queue_spreads_and_gives_back_everything(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r2"], b2=["r3"])
    sender = mesh.client("r1", "p").sender("sharded")
    mesh.run(0.5)
    send_all(mesh, sender, 40)
    kept = [mesh.brokers[name].snapshot().queues for name in ("b1", "b2")]
    assert all(queues for queues in kept), "both brokers have a share"
    receiver = mesh.client("r4", "c").receiver("sharded", credit=100)
    mesh.run_until(lambda: sorted(bodies(receiver)) == list(range(40)))


@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
def test_a_drain_of_a_sharded_queue_empties_every_shard_before_it_is_answered(tmp_path: Path, router: str):
    mesh = mesh_of(tmp_path, b1=["r2"], b2=["r3"])
    sender = mesh.client("r1", "p").sender("sharded")
    mesh.run(0.5)
    send_all(mesh, sender, 20)
    receiver = mesh.client(router, "c").receiver("sharded", credit=0)
    mesh.run_until(lambda: receiver.link.is_open)
    receiver.tops_up = False
    receiver.link.request_drain(100)
    mesh.run_until(lambda: receiver.link.credit == 0 or not receiver.link.is_drain_pending)
    assert sorted(bodies(receiver)) == list(range(20))


@pytest.mark.parametrize("at", [("r1", "r1"), ("r2", "r3"), ("r1", "r3")])
@pytest.mark.parametrize("count", [50, 500])
def test_whoever_drains_as_soon_as_he_attached_gets_all_too(tmp_path: Path, at: tuple[str, str], count: int):
    """The links to the shards come with their first consumer, and end with the last one."""
    mesh = mesh_of(tmp_path, b1=[at[0]], b2=[at[1]])
    sender = mesh.client("r1", "p").sender("sharded")
    mesh.run(0.5)
    send_all(mesh, sender, count)
    for seconds in (0.0, 0.5):
        client = mesh.client("r1")
        receiver = client.receiver("sharded", credit=0)
        receiver.tops_up = receiver.accepts = False
        drain_until_empty(mesh, receiver)
        assert sorted(bodies(receiver)) == list(range(count))
        mesh.cut(client.pipe)
        mesh.run(seconds)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("at", [("r1", "r1"), ("r1", "r3"), ("r3", "r3")], ids=" and ".join)
def test_drains_of_several_consumers_at_once_are_all_answered(tmp_path: Path, at: tuple[str, str], count: int):
    mesh = mesh_of(tmp_path, b1=["r1"], b2=["r1"])
    sender = mesh.client("r1", "p").sender("sharded")
    receivers = [mesh.client(router).receiver("sharded", credit=0) for router in at]
    mesh.run(2)
    send_all(mesh, sender, count)
    for receiver in receivers:
        receiver.tops_up = False
        receiver.link.request_drain(5)
    mesh.run_until(lambda: not any(receiver.link.is_drain_pending for receiver in receivers), 5)
    assert sum(len(receiver.messages) for receiver in receivers) == count


def test_a_drain_that_brings_large_messages_is_answered(tmp_path: Path):
    """Of those a link is granted fewer; not while its sender gives all credit back."""
    mesh = mesh_of(tmp_path, b1=["r1"], b2=["r2"])
    sender = mesh.client("r1", "p").sender("sharded")
    for _ in range(20):
        mesh.send(sender, Message(body=bytes(200_000)).encode())
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    receiver = mesh.client("r1").receiver("sharded", credit=0)
    mesh.run_until(lambda: receiver.link.is_open)
    receiver.tops_up = False
    receiver.link.request_drain(1000)
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 5)
    assert len(receiver.messages) == 20


def drain_until_empty(mesh: SimMesh, receiver: SimReceiver) -> None:
    before = -1
    while before < len(receiver.messages):
        before = len(receiver.messages)
        receiver.link.request_drain(100)
        mesh.run_until(lambda: receiver.link.credit == 0)
        receiver.link.end_drain()


def test_an_anonymous_sender_reaches_queue_and_topic(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    subscriber = mesh.client("r4", "s").receiver("news.a", credit=10)
    mesh.run_until(lambda: subscriber.link.is_open)
    sender = mesh.client("r1", "p").sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(address="orders", body="1").encode())
    sender.send(Message(address="news.a", body="2").encode())
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    receiver = mesh.client("r2", "c").receiver("orders")
    mesh.run_until(lambda: bodies(receiver) == [1] and bodies(subscriber) == [2])


def test_browsing_a_sharded_queue_is_refused_with_a_sentence(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r2"], b2=["r3"])
    receiver = mesh.client("r1", "c").receiver("sharded", filter={"f": "x"})
    mesh.run_until(lambda: receiver.error is not None)
    assert receiver.error.condition == "amqp:not-implemented"
    assert (
        receiver.error.description
        == "the consumer asked for a filter, not supported on queue 'sharded' over brokers b1, b2"
    )


def test_an_unsettled_message_of_a_lost_consumer_goes_to_the_next_with_its_count_raised(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    first = mesh.client("r1", "one")
    holder = first.receiver("orders", credit=1)
    holder.accepts = False
    sender = mesh.client("r2", "p").sender("orders")
    send_all(mesh, sender, 1)
    mesh.run_until(lambda: bool(holder.held))
    mesh.cut(first.pipe)
    next_one = mesh.client("r4", "two").receiver("orders")
    mesh.run_until(lambda: len(next_one.messages) == 1)
    message = Message()
    message.decode(next_one.messages[0])
    assert message.delivery_count == 1


def test_a_producer_hears_of_written_deliveries_that_a_lost_path_left_in_doubt(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    sender = mesh.client("r1", "p").sender("orders")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(body="1").encode())
    mesh.run(0.0015)  # at r1 and on its way, not yet answered
    mesh.kill("r2")
    mesh.run_until(lambda: len(sender.outcomes) == 1)
    assert sender.outcomes[1].kind in (OutcomeCode.MODIFIED, OutcomeCode.ACCEPTED)


def test_a_passing_subscriber_goes_on_when_the_transit_router_dies(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    subscriber = mesh.client("r1", "s").receiver("news.sport", credit=50)
    mesh.run_until(lambda: subscriber.link.is_open)
    sender = mesh.client("r4", "p").sender("news.sport")
    send_all(mesh, sender, 5)
    mesh.run_until(lambda: bodies(subscriber) == list(range(5)))
    mesh.kill("r2")
    mesh.run(1)  # nobody keeps what comes while it is not attached
    send_all(mesh, sender, 5, first=10)
    mesh.run_until(lambda: bodies(subscriber)[5:] == list(range(10, 15)))
    assert subscriber.error is None


def test_a_link_to_a_queue_stays_on_its_path_when_another_becomes_cheaper(tmp_path: Path):
    mesh = mesh_of(tmp_path, b1=["r3"])
    sender = mesh.client("r1").sender("orders")
    send_all(mesh, sender, 1)
    for router, neighbor in (("r1", "r2"), ("r2", "r1")):
        mesh.routers[router].set_cost(neighbor, 100, mesh.now)
    mesh.run(5)
    send_all(mesh, sender, 1)
    routes = {router: mesh.routers[router].snapshot().transit_circuits for router in ("r2", "r4")}
    assert routes == {"r2": 1, "r4": 0}
    newer = mesh.client("r1").sender("orders")
    mesh.run_until(lambda: newer.link.credit > 0)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1

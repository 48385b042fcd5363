"""Queues and topics for clients of edge routers: their links go up one to one, and so does all they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edges import with_brokers
from mesh_tests.sim.test_edge_rows import message_to
from wire.delivery import ACCEPTED, OutcomeCode
from wire.terminus import DistributionMode, Durability, Expiry


def send_all(mesh: SimMesh, sender: SimSender, count: int, first: int = 0) -> None:
    for index in range(first, first + count):
        mesh.send(sender, Message(body=str(index)).encode())
    mesh.run_until(lambda: len(sender.open) == 0)


def bodies(receiver: SimReceiver) -> list[int]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append(int(message.body))
    return found


@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize(
    ("producer", "consumer"), [("e1", "e3"), ("e3", "e1"), ("e1", "e1"), ("e1", "r2"), ("r2", "e3")]
)
def test_a_queue_keeps_what_an_edge_sends_and_an_edge_takes_it(
    tmp_path: Path, address: str, producer: str, consumer: str
):
    mesh = with_brokers(tmp_path)
    sender = mesh.client(producer).sender(address)
    send_all(mesh, sender, 20)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    receiver = mesh.client(consumer).receiver(address, credit=50)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert sorted(bodies(receiver)) == list(range(20))
    if address == "orders":
        assert bodies(receiver) == list(range(20))


@pytest.mark.parametrize("how", ["drops", "dies"])
@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_clients_of_a_queue_keep_their_links_when_the_uplink_is_lost(tmp_path: Path, address: str, how: str):
    mesh = with_brokers(tmp_path)
    receiver = mesh.client("e3").receiver(address, credit=50)
    sender = mesh.client("e3").sender(address)
    send_all(mesh, sender, 10)
    if how == "dies" and address == "orders":
        mesh.kill("r3")
    else:
        mesh.cut_trunk("e3", "r3")
    mesh.run(0.3)
    for index in range(10, 20):
        mesh.send(sender, Message(body=str(index)).encode())
    mesh.run_until(lambda: len(sender.open) == 0 or address == "sharded")
    mesh.run(3)
    assert (receiver.error, sender.error) == (None, None)
    missing = set(range(20)) - set(bodies(receiver))
    assert not missing or (address == "sharded" and how == "dies")


def test_a_durable_subscription_goes_on_at_another_edge(tmp_path: Path):
    mesh = with_brokers(tmp_path)
    wanted = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
    client = mesh.client("e1", "c")
    first = client.receiver("news", credit=10, name="sub", **wanted)
    mesh.run(0.5)
    sender = mesh.client("e3").sender("news")
    send_all(mesh, sender, 2)
    mesh.run_until(lambda: len(first.messages) == 2)
    mesh.cut(client.pipe)
    mesh.run(0.5)
    send_all(mesh, sender, 2, first=2)
    second = mesh.client("e3", "c").receiver("news", credit=10, name="sub", **wanted)
    mesh.run_until(lambda: len(second.messages) == 2)
    assert bodies(second) == [2, 3]


def test_a_browser_at_an_edge_sees_all_and_takes_none(tmp_path: Path):
    mesh = with_brokers(tmp_path)
    send_all(mesh, mesh.client("e3").sender("orders"), 5)
    browser = mesh.client("e1").receiver("orders", credit=10, distribution_mode=DistributionMode.COPY)
    mesh.run_until(lambda: len(browser.messages) == 5)
    taker = mesh.client("e2").receiver("orders", credit=10)
    mesh.run_until(lambda: len(taker.messages) == 5)


@pytest.mark.parametrize("address", ["orders", "sharded"])
@pytest.mark.parametrize("count", [0, 3])
def test_a_drain_is_answered_when_the_queue_is_dry(tmp_path: Path, address: str, count: int):
    mesh = with_brokers(tmp_path)
    if count:
        send_all(mesh, mesh.client("e3").sender(address), count)
    receiver = mesh.client("e1").receiver(address, credit=0)
    mesh.run(0.5)
    receiver.tops_up = False
    receiver.link.request_drain(10)
    mesh.run(3)
    assert len(receiver.messages) == count
    assert receiver.link.credit == 0


def test_an_anonymous_producer_reaches_queues_and_topics(tmp_path: Path):
    mesh = with_brokers(tmp_path)
    news = mesh.client("e3").receiver("news", credit=5)
    mesh.run(0.5)
    sender = mesh.client("e1").sender(None)
    for address in ("orders", "sharded", "news"):
        mesh.send(sender, message_to(address))
    mesh.run(1)
    assert sender.outcomes == {1: ACCEPTED, 2: ACCEPTED, 3: ACCEPTED}
    assert len(news.messages) == 1


def test_a_broker_that_cannot_be_reached_ends_the_link_after_ten_seconds(tmp_path: Path):
    mesh = with_brokers(tmp_path)
    sender = mesh.client("e1").sender("orders")
    send_all(mesh, sender, 1)
    mesh.kill_broker("b1")
    mesh.run(5)
    assert sender.error is None
    mesh.run(6)
    assert sender.error.condition == "amqp:link:detach-forced"


def test_what_is_too_large_for_the_listener_ends_the_link_at_the_edge(tmp_path: Path):
    mesh = with_brokers(tmp_path, listener={"max_message_bytes": 1000})
    sender = mesh.client("e1").sender("orders")
    mesh.run(0.5)
    mesh.send(sender, b"x" * 2000)
    mesh.run(0.5)
    assert sender.error.condition == "amqp:link:message-size-exceeded"


# Fallback
@pytest.mark.parametrize(("producer", "consumer"), [("e1", "e1"), ("e1", "e3"), ("r2", "e1"), ("e3", "r1")])
def test_what_nobody_takes_is_kept_and_comes_before_what_is_new(tmp_path: Path, producer: str, consumer: str):
    mesh = with_brokers(tmp_path)
    sender = mesh.client(producer).sender("calls")
    send_all(mesh, sender, 5)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    receiver = mesh.client(consumer).receiver("calls", credit=5)
    for index in range(5, 30):
        mesh.send(sender, Message(body=str(index)).encode())
    mesh.run_until(lambda: len(receiver.messages) == 30)
    assert bodies(receiver) == list(range(30))


def test_what_a_consumer_at_an_edge_leaves_is_kept(tmp_path: Path):
    mesh = with_brokers(tmp_path)
    client = mesh.client("e1")
    receiver = client.receiver("calls", credit=3)
    receiver.tops_up = False
    sender = mesh.client("e1").sender("calls")
    for index in range(3):
        mesh.send(sender, Message(body=str(index)).encode())
    mesh.run(0.5)
    for index in range(3, 5):
        if sender.link.credit:
            mesh.send(sender, Message(body=str(index)).encode())
            mesh.run(0.2)
    receiver.link.close()
    mesh.run(6)
    sent = sender.count
    assert not sender.open
    assert {outcome.kind for outcome in sender.outcomes.values()} <= {OutcomeCode.ACCEPTED, OutcomeCode.RELEASED}
    late = mesh.client("e3").receiver("calls", credit=10)
    accepted = [number for number, outcome in sender.outcomes.items() if outcome == ACCEPTED]
    mesh.run(3)
    assert len(receiver.messages) + len(late.messages) == len(accepted)
    assert len(accepted) == sent

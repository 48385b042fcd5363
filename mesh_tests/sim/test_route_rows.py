"""What becomes of a client's link to a queue or topic when the broker or the client is lost? One to three routers."""

from __future__ import annotations

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.test_broker_routes import bodies, mesh_of, send_all
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED
from wire.link import RECEIVE_FIRST, SEND_MIXED, SEND_SETTLED
from wire.terminus import DistributionMode, Durability, Expiry

REATTACH_S = 10.0
PATH_WAIT_S = 2.0
LARGE_BYTES = 100_000
DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


# The broker is lost
def test_a_producer_keeps_its_link_and_what_was_under_way_is_in_doubt(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    sender = mesh.client("r1", "p").sender("orders")
    send_all(mesh, sender, 1)
    mesh.run_until(lambda: sender.link.credit > 5)
    for _ in range(5):
        sender.send(Message(body="1").encode())
    mesh.run(0.0015)  # at r1, and not at the broker
    mesh.kill_broker("b1")
    mesh.run_until(lambda: not sender.open, 1)
    assert [outcome for number, outcome in sender.outcomes.items() if number > 1] == [MODIFIED_FAILED] * 5
    mesh.run_until(lambda: sender.link.credit == 0, 1)
    mesh.start_broker("b1")
    send_all(mesh, sender, 5)
    assert list(sender.outcomes.values())[-5:] == [ACCEPTED] * 5
    assert sender.error is None


def test_a_consumer_keeps_its_link_and_gets_what_it_held_again(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 3)
    receiver = mesh.client("r1", "c").receiver("orders")
    receiver.accepts = False
    mesh.run_until(lambda: len(receiver.held) == 3)
    mesh.kill_broker("b1")
    mesh.run(1)
    receiver.held.clear()
    receiver.accepts = True
    mesh.start_broker("b1")
    mesh.run_until(lambda: bodies(receiver) == [0, 1, 2, 0, 1, 2], REATTACH_S)
    message = Message()
    message.decode(receiver.messages[-1])
    assert message.delivery_count == 1
    assert receiver.error is None


def test_links_go_on_when_only_their_own_connection_to_the_broker_is_lost(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    before = _pipes_of(mesh, "b1")
    sender = mesh.client("r1", "p").sender("orders")
    send_all(mesh, sender, 1)
    (pipe,) = [pipe for pipe in _pipes_of(mesh, "b1") if pipe not in before]
    mesh.cut(pipe)
    mesh.run_until(lambda: sender.link.credit == 0, 1)
    send_all(mesh, sender, 1)
    assert sender.error is None


def test_a_drain_that_was_pending_when_the_broker_was_lost_is_answered_at_once(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    receiver = mesh.client("r1", "c").receiver("orders", credit=0)
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.run(0.1)
    for pipe in _pipes_of(mesh, "b1"):
        mesh.cut(pipe, silently=True)
    receiver.link.request_drain(10)
    mesh.run(1)
    assert receiver.link.is_drain_pending
    mesh.kill_broker("b1")
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 0.5)
    assert receiver.link.credit == 0


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.004, 0.006, 1.0])
@pytest.mark.parametrize("before_s", [0.0, 0.003, 0.006])
def test_a_drain_that_is_asked_for_while_the_broker_is_away_is_answered_when_it_is_back(
    tmp_path: Path, egress: str, before_s: float, after_s: float
):
    """Unless it crosses the news of the loss; then the next one is. The client's own connection may be lost first."""
    mesh = mesh_of(tmp_path, b1=[egress])
    before = _pipes_of(mesh, "b1")
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 3)
    receiver = mesh.client("r1", "c").receiver("orders", credit=0)
    mesh.run_until(lambda: receiver.link.is_open)
    for pipe in _pipes_of(mesh, "b1"):
        if pipe not in before:
            mesh.cut(pipe)
    mesh.run(before_s)
    mesh.kill_broker("b1")
    mesh.run(after_s)
    receiver.tops_up = False
    receiver.link.request_drain(10)
    for _ in range(100):
        mesh.run(0.0005)
        if not receiver.link.is_drain_pending:
            receiver.link.end_drain()
            receiver.link.request_drain(10)
            break
    mesh.run(2)
    assert receiver.link.is_drain_pending
    mesh.start_broker("b1")
    mesh.run_until(lambda: not receiver.link.is_drain_pending, REATTACH_S)
    assert bodies(receiver) == [0, 1, 2]
    assert receiver.link.credit == 0


@egress_at("r2", "r3")
def test_links_go_on_over_another_path_when_theirs_is_lost(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    sender = mesh.client("r1", "p").sender("orders")
    send_all(mesh, sender, 3)
    client = mesh.client("r1", "c")
    receiver = client.receiver("orders")
    receiver.accepts = False
    draining = client.receiver("news.sport", credit=0)
    mesh.run_until(lambda: len(receiver.held) == 3 and draining.link.is_open)
    mesh.run_until(lambda: sender.link.credit > 5)
    for _ in range(5):
        sender.send(Message(body="9").encode())
    draining.link.request_drain(10)
    mesh.run(0.0015)  # at r1, and not at the broker
    mesh.cut_trunk("r1", "r2")
    mesh.run(0.003)  # sooner than anything is attached over another path
    assert not draining.link.is_drain_pending
    assert list(sender.outcomes.values())[-5:] == [MODIFIED_FAILED] * 5
    receiver.held.clear()
    receiver.accepts = True
    mesh.run_until(lambda: bodies(receiver)[:6] == [0, 1, 2, 0, 1, 2], REATTACH_S)
    send_all(mesh, sender, 1)
    assert list(sender.outcomes.values())[-1] == ACCEPTED
    assert (sender.error, receiver.error, draining.error) == (None, None, None)


def _pipes_of(mesh: SimMesh, broker: str):
    node = mesh.brokers[broker]
    return [pipe for pipe in mesh.pipes if any(end[0] is node for end in pipe.ends)]


# The client is lost, or leaves
@pytest.mark.parametrize("way", ["detaches", "is lost"])
def test_a_durable_subscription_outlives_a_subscriber_that(tmp_path: Path, egress: str, way: str):
    mesh, missed = _subscribe_and_leave(tmp_path, egress, way, durable=True)
    again = mesh.client("r1", "me").receiver("news.sport", name="sub", credit=50, **DURABLE)
    mesh.run_until(lambda: bodies(again) == missed)


def test_a_durable_subscription_ends_with_a_close(tmp_path: Path, egress: str):
    mesh, _ = _subscribe_and_leave(tmp_path, egress, "closes", durable=True)
    _assert_gets_only_what_is_new(mesh, durable=True)


@pytest.mark.parametrize("way", ["closes", "detaches", "is lost"])
def test_a_passing_subscription_does_not_outlive_a_subscriber_that(tmp_path: Path, egress: str, way: str):
    mesh, _ = _subscribe_and_leave(tmp_path, egress, way, durable=False)
    _assert_gets_only_what_is_new(mesh, durable=False)


def _subscribe_and_leave(folder: Path, egress: str, way: str, *, durable: bool) -> tuple[SimMesh, list[int]]:
    """The mesh, and what was published since."""
    mesh = mesh_of(folder, b1=[egress])
    client = mesh.client("r1", "me")
    subscriber = client.receiver("news.sport", name="sub", **DURABLE if durable else {})
    sender = mesh.client("r3", "p").sender("news.sport")
    mesh.run_until(lambda: subscriber.link.is_open)
    send_all(mesh, sender, 1, first=100)
    mesh.run_until(lambda: bodies(subscriber) == [100])
    {
        "closes": subscriber.link.close,
        "detaches": subscriber.link.detach,
        "is lost": lambda: mesh.cut(client.pipe),
    }[way]()
    mesh.run(0.5)
    send_all(mesh, sender, 5)
    return mesh, list(range(5))


def _assert_gets_only_what_is_new(mesh: SimMesh, *, durable: bool) -> None:
    again = mesh.client("r1", "me").receiver("news.sport", name="sub", credit=50, **DURABLE if durable else {})
    mesh.run_until(lambda: again.link.is_open)
    send_all(mesh, mesh.client("r3", "p2").sender("news.sport"), 1, first=200)
    mesh.run_until(lambda: bool(again.messages))
    assert bodies(again) == [200]


@pytest.mark.parametrize("way", ["closes", "detaches", "is lost"])
def test_the_links_at_the_broker_go_with_a_client_that(tmp_path: Path, egress: str, way: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    before = mesh.brokers["b1"].snapshot().link_count
    client = mesh.client("r1", "me")
    links = [client.sender("orders"), client.receiver("orders"), client.receiver("news.sport", **DURABLE)]
    mesh.run_until(lambda: mesh.brokers["b1"].snapshot().link_count == before + len(links))
    if way == "is lost":
        mesh.cut(client.pipe)
    else:
        for each in links:
            each.link.close() if way == "closes" else each.link.detach()
    mesh.run_until(lambda: mesh.brokers["b1"].snapshot().link_count == before)


def test_what_a_lost_consumer_held_goes_to_the_next(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 3)
    client = mesh.client("r1", "c")
    lost = client.receiver("orders", credit=2)
    lost.accepts = False
    mesh.run_until(lambda: len(lost.held) == 2)
    mesh.cut(client.pipe)
    following = mesh.client("r1", "d").receiver("orders")
    mesh.run_until(lambda: sorted(bodies(following)) == [0, 1, 2])


def test_every_outcome_of_a_consumer_reaches_the_broker(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 4)
    receiver = mesh.client("r1", "c").receiver("orders", credit=4)
    receiver.accepts = False
    mesh.run_until(lambda: len(receiver.held) == 4)
    outcomes = (ACCEPTED, deliveries.rejected("amqp:not-allowed", "no"), deliveries.RELEASED, MODIFIED_FAILED)
    for (delivery, message), outcome in zip(receiver.held, outcomes, strict=True):
        receiver.answer(delivery, message, outcome)
    receiver.held.clear()
    receiver.accepts = True
    receiver.link.grant(10)
    mesh.run_until(lambda: len(receiver.messages) == 6)
    again = [Message() for _ in range(2)]
    for message, data in zip(again, receiver.messages[4:], strict=True):
        message.decode(data)
    assert [(message.body, message.delivery_count) for message in again] == [("2", 0), ("3", 1)]


# The consumer takes its credit back
def cross_a_reduction(mesh: SimMesh, modes: tuple[int, int] = (SEND_MIXED, RECEIVE_FIRST)) -> SimReceiver:
    """The consumer at r1 asked for one message, and wanted none any more before it came."""
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 1)
    receiver = mesh.client("r1", "c").receiver("orders", credit=0, modes=modes)
    mesh.run_until(lambda: receiver.link.is_open)
    receiver.tops_up = False
    receiver.link.grant(1)
    mesh.run(0.0015)  # the grant is at r1
    receiver.link.set_credit(0)
    mesh.run(0.5)
    assert receiver.messages == []
    return receiver


def test_what_crosses_a_reduction_of_credit_goes_to_another_consumer(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    resting = cross_a_reduction(mesh)
    other = mesh.client("r3", "d").receiver("orders")
    mesh.run_until(lambda: bodies(other) == [0], PATH_WAIT_S)
    message = Message()
    message.decode(other.messages[0])
    assert message.delivery_count == 0
    assert resting.messages == []


def test_what_crosses_a_reduction_of_credit_is_there_when_credit_comes_soon(tmp_path: Path, egress: str):
    mesh = mesh_of(tmp_path, b1=[egress])
    resting = cross_a_reduction(mesh)
    resting.link.grant(1)
    mesh.run_until(lambda: bodies(resting) == [0], 0.02)


def test_what_crosses_a_reduction_of_credit_and_is_settled_waits_for_that_consumer(tmp_path: Path, egress: str):
    """Nobody would hear that it came back."""
    mesh = mesh_of(tmp_path, b1=[egress])
    resting = cross_a_reduction(mesh, (SEND_SETTLED, RECEIVE_FIRST))
    mesh.run(3 * PATH_WAIT_S)
    assert resting.messages == []
    resting.link.grant(1)
    mesh.run_until(lambda: bodies(resting) == [0])


def test_behind_a_large_message_nothing_is_handed_over_that_the_window_does_not_take(tmp_path: Path, egress: str):
    """It would stay there when credit is taken back."""
    mesh = mesh_of(tmp_path, b1=[egress])
    sender = mesh.client("r1", "p").sender("orders")
    mesh.send(sender, Message(body=bytes(LARGE_BYTES)).encode())
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    send_all(mesh, sender, 30)
    client = mesh.client("r1", "c", max_frame_bytes=512, window_frames=4)
    resting = client.receiver("orders", credit=100)
    mesh.run_until(lambda: len(resting.partial) > LARGE_BYTES // 4)
    resting.link.set_credit(0)
    resting.tops_up = False
    mesh.run_until(lambda: len(resting.messages) == 1)
    other = mesh.client("r3", "d").receiver("orders", credit=100)
    # It settled the large one meanwhile: that is looked at once more.
    mesh.run_until(lambda: sorted(bodies(other)) == list(range(30)), 2 * PATH_WAIT_S + 1)
    assert len(resting.messages) == 1


def test_a_browser_that_took_its_credit_back_sees_each_message_all_the_same(tmp_path: Path, egress: str):
    """A queue shows it each but once."""
    mesh = mesh_of(tmp_path, b1=[egress])
    send_all(mesh, mesh.client("r1", "p").sender("orders"), 3)
    browser = mesh.client("r1", "c").receiver("orders", credit=0, distribution_mode=DistributionMode.COPY)
    mesh.run_until(lambda: browser.link.is_open)
    browser.tops_up = False
    browser.link.grant(1)
    mesh.run(0.0015)
    browser.link.set_credit(0)
    mesh.run(3 * PATH_WAIT_S)
    assert browser.messages == []
    browser.link.grant(10)
    mesh.run_until(lambda: bodies(browser) == [0, 1, 2])

"""What becomes of a client's link to a queue or topic when the broker or the client is lost, through real sockets?

The broker is at one, two or three routers. Clients never connect anew.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import pytest

from mesh_tests.live.row_mesh import new_address, slow
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.message import decode
from wire.terminus import Durability, Expiry

REATTACH_S = 10.0
IN_DOUBT_BYTES = 10_000
BUSY_S = 30.0
"""What a busy machine may take for it."""
TERMINI = {
    "durable": {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER},
    "never expires": {"expiry": Expiry.NEVER},
    "passing": {},
}


@pytest.fixture
def broker(egress):
    """Attached to that router alone."""
    return egress.replace("r", "b")


@pytest.fixture
def queue(egress):
    return new_address(f"queue.{egress}")


@pytest.fixture
def topic(egress):
    return new_address(f"topic.{egress}")


@pytest.fixture
def client(rows):
    """Both producer and consumer, at r1."""
    with WireClient(rows.port("r1"), container_id="client") as client:
        yield client


def fill(client, address, count):
    sender = client.sender(address)
    numbers = [client.send_when_due(sender, number) for number in range(count)]
    assert [client.wait_outcome(number) for number in numbers] == [ACCEPTED] * count
    return sender


# The broker is lost
@dataclass
class Loss:
    """What four links of a client saw of it; none of them was detached."""

    in_doubt: list[Outcome | None]
    afterwards: Outcome | None
    again: list[tuple[int, int]]
    """Body and delivery-count of what the consumer had held."""
    drained: list[int]
    """What a drain brought that was asked for while the broker was away."""


def bytes_to(rows, router, broker):
    """That the router wrote to the broker, by the number of the connection: one for each client."""
    known = rows.snapshot(router)["node"]["connections"]
    return {each["number"]: each["bytes_out"] for each in known if each["container_id"] == broker}


def has_written(rows, router, broker, before, count):
    now = bytes_to(rows, router, broker)
    return any(written - before.get(number, 0) >= count for number, written in now.items())


@slow
def lose_the_broker(rows, egress):
    """It is stopped first, so that it answers nothing before it dies; it comes back by itself."""
    broker = egress.replace("r", "m")
    queues = [new_address(f"mortal.{egress}") for _ in range(4)]
    with rows.restart, WireClient(rows.port("r1"), container_id="client") as client:
        sender = fill(client, queues[0], 1)
        for queue in queues[1:3]:
            fill(client, queue, 3)
        client.receiver(queues[1], credit=10)
        client.wait_arrived(3).clear()
        late, pending = client.receiver(queues[2]), client.receiver(queues[3])
        client.wait(lambda: sender.credit > 5, "credit")
        pid = rows.pid(broker)
        os.kill(pid, signal.SIGSTOP)
        before = bytes_to(rows, egress, broker)
        numbers = [client.send(sender, bytes(IN_DOUBT_BYTES)) for _ in range(5)]
        pending.request_drain(10)
        is_written = lambda: has_written(rows, egress, broker, before, 5 * IN_DOUBT_BYTES)  # noqa: E731
        client.wait(is_written, "them to be written to the broker", BUSY_S)
        assert pending.is_drain_pending
        os.kill(pid, signal.SIGKILL)
        in_doubt = [client.wait_outcome(number) for number in numbers]
        client.wait(lambda: not pending.is_drain_pending, "the answer to the pending drain", BUSY_S)
        client.wait(lambda: sender.credit == 0, "credit to be taken back")
        # The first may still find the link that is being lost, and bring nothing.
        for _ in range(2):
            late.request_drain(10)
            client.wait(lambda: not late.is_drain_pending, "the answer to the late drain", BUSY_S)
            assert late.credit == 0
            late.end_drain()
        afterwards = client.wait_outcome(client.send_when_due(sender))
        client.wait_arrived(6, BUSY_S)
        assert pending.credit == 0
        assert all(link.is_open for link in client.endpoint.links)
        arrived = client.settle_all()
        again = [(each.body, decode(each.data).delivery_count) for each in arrived if each.link not in (late, pending)]
        return Loss(in_doubt, afterwards, again, [each.body for each in arrived if each.link is late])


def test_a_producer_keeps_its_link_and_what_was_under_way_is_in_doubt(at_once, egress):
    loss = at_once(lose_the_broker, egress)
    assert loss.in_doubt == [MODIFIED_FAILED] * 5
    assert loss.afterwards == ACCEPTED


def test_a_consumer_keeps_its_link_and_gets_what_it_held_again(at_once, egress):
    assert at_once(lose_the_broker, egress).again == [(0, 1), (1, 1), (2, 1)]


def test_drains_are_answered_whether_asked_for_before_the_loss_or_after(at_once, egress):
    assert at_once(lose_the_broker, egress).drained == [0, 1, 2]


@slow
def lose_the_broker_for_good(rows, egress):
    """After how many seconds a producer and a consumer were detached, and why."""
    with WireClient(rows.port("r1"), container_id="client") as client:
        links = [client.sender(f"doomed.{egress}"), client.receiver(f"doomed.{egress}")]
        rows.all_attached.wait(BUSY_S)
        start = time.monotonic()
        when = {}

        def are_detached():
            for link in links:
                if client.detached(link):
                    when.setdefault(link, time.monotonic() - start)
            return len(when) == len(links)

        client.wait(are_detached, "both to be detached", BUSY_S, outlasts_detach=True)
        return [(when[link], client.detached(link)) for link in links]


def test_links_to_a_broker_that_does_not_come_back_are_kept_for_a_while_and_then_detached(at_once, egress):
    for seconds, detached in at_once(lose_the_broker_for_good, egress):
        assert REATTACH_S - 1 < seconds < BUSY_S
        assert detached.error.condition == "amqp:link:detach-forced"
        assert not detached.closed


# The client is lost, or leaves
@pytest.mark.parametrize("terminus", TERMINI)
@pytest.mark.parametrize("way", ["closes", "detaches", "is lost"])
def test_a_subscription_stays_if_it_is_meant_to_and_its_subscriber(rows, broker, topic, terminus, way):
    leaving = WireClient(rows.port("r1"), container_id="subscriber")
    link = leaving.receiver(topic, credit=10, name="sub", **TERMINI[terminus])
    wait_until(lambda: _consumers(rows, broker, topic) == [1], 30.0, "the subscription")
    _leave(leaving, link, way)
    stays = terminus != "passing" and way != "closes"
    wait_until(lambda: _consumers(rows, broker, topic) == ([0] if stays else []), 30.0, "the broker to hear of it")
    leaving.kill()
    if stays:
        with WireClient(rows.port("r2"), container_id="subscriber") as again:
            link = again.receiver(topic, name="sub", **TERMINI[terminus])
            wait_until(lambda: _consumers(rows, broker, topic) == [1], 30.0, "the subscription")
            _leave(again, link, "closes")
            wait_until(lambda: _consumers(rows, broker, topic) == [], 30.0, "its end")


def _leave(client, link, way):
    if way == "is lost":
        client.kill()
    else:
        link.close() if way == "closes" else link.detach()
        client.wait(lambda: link.is_gone, "the answer to the detach")


def _consumers(rows, broker, address):
    """Of each queue or subscription of that address."""
    queues = rows.snapshot(broker)["node"]["queues"]
    return [each["queue"]["consumer_count"] for each in queues if each["address"] == address]


def test_what_a_lost_consumer_held_goes_to_the_next(rows, client, queue):
    fill(client, queue, 3)
    mortal = WireClient(rows.port("r1"), container_id="mortal")
    mortal.receiver(queue, credit=2)
    mortal.wait_arrived(2)
    mortal.kill()
    client.receiver(queue, credit=10)
    assert sorted(each.body for each in client.wait_arrived(3)) == [0, 1, 2]
    client.settle_all()


def test_every_outcome_of_a_consumer_reaches_the_broker(client, queue):
    fill(client, queue, 4)
    receiver = client.receiver(queue, credit=4)
    outcomes = (ACCEPTED, rejected("amqp:not-allowed", "no"), RELEASED, MODIFIED_FAILED)
    for each, outcome in zip(client.wait_arrived(4), outcomes, strict=True):
        each.settle(outcome)
    client.arrived.clear()
    receiver.grant(10)
    wait_with([client], lambda: len(client.arrived) == 2, "what was given back")
    assert [(each.body, decode(each.data).delivery_count) for each in client.arrived] == [(2, 0), (3, 1)]
    client.settle_all()

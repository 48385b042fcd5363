"""What becomes of messages between the producers and the consumers of a queue?"""

import pytest

from broker.links.incoming import LINK_CREDIT
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Rig
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode, rejected
from wire.link import SEND_MIXED, SEND_SETTLED
from wire.terminus import DistributionMode

MODIFIED_HERE = Outcome(OutcomeCode.MODIFIED, delivery_failed=True, undeliverable_here=True)


def test_consumers_compete(rig: Rig) -> None:
    client = rig.client()
    first, second = client.consumer("orders", name="1"), client.consumer("orders", name="2")
    producer = client.producer("orders")
    for body in range(4):
        producer.send(body)
    assert (first.bodies, second.bodies) == ([0, 2], [1, 3])


@pytest.mark.parametrize(
    ("outcome", "count"), [(RELEASED, 0), (MODIFIED_FAILED, 1), (Outcome(OutcomeCode.MODIFIED), 0), (None, 1)]
)
def test_what_a_consumer_gives_back_comes_again(rig: Rig, outcome: Outcome | None, count: int) -> None:
    client = rig.client()
    client.producer("orders").send("again")
    consumer = client.consumer("orders", credit=1)
    consumer.received[0].give(outcome)
    consumer.link.grant(1)
    rig.run()
    assert consumer.bodies == ["again", "again"]
    assert consumer.counts == [0, count]


@pytest.mark.parametrize("outcome", [ACCEPTED, rejected("amqp:decode-error", "no")])
def test_what_a_consumer_keeps_or_rejects_is_gone(rig: Rig, outcome: Outcome) -> None:
    client = rig.client()
    client.producer("orders").send("gone")
    client.consumer("orders").received[0].give(outcome)
    assert rig.queue("orders").queue.available_count == 0
    assert held_by(rig.store.load()).entries == []


def test_what_a_consumer_gives_back_with_its_credit_goes_to_another_consumer(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("a"), producer.send("b")
    first = client.consumer("orders", credit=3, name="first")
    for received in first.received:
        deliveries.set_outcome(received.delivery, RELEASED)
        deliveries.settle(received.delivery)
    first.link.set_credit(0)
    rig.run()
    producer.send("c")
    assert first.bodies == ["a", "b"]
    assert client.consumer("orders", name="second").bodies == ["a", "b", "c"]


def test_undeliverable_here_goes_to_another_consumer(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("not for you")
    first = client.consumer("orders", name="first")
    first.received[0].give(MODIFIED_HERE)
    assert len(first.received) == 1
    assert client.consumer("orders", name="second").counts == [1]


def test_a_broken_connection_gives_back_what_was_written_counted_and_what_was_not_uncounted(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    for body in ("a", "b"):
        producer.send(body)
    other = rig.client("other")
    other.consumer("orders", credit=1)
    other.vanish()
    assert client.consumer("orders").counts == [1, 0]


def test_a_drain_is_answered_when_nothing_is_left(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("only")
    consumer = client.consumer("orders", credit=0)
    consumer.link.request_drain(10)
    rig.run()
    assert consumer.bodies == ["only"]
    assert consumer.link.credit == 0
    assert not consumer.link.is_drain_pending


def test_a_browser_takes_nothing(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("look")
    browser = client.consumer("orders", name="browser", distribution_mode=DistributionMode.COPY)
    browser.received[0].give(ACCEPTED)
    assert client.consumer("orders").bodies == ["look"]


def test_a_pre_settled_message_is_stored_and_a_pre_settled_consumer_takes_it_for_good(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("fire", is_settled=True)
    rig.crash()
    client = rig.client()
    assert client.consumer("orders", settle_modes=(SEND_SETTLED, 0)).bodies == ["fire"]
    rig.crash()
    assert rig.client().consumer("orders").bodies == []


def test_an_expired_message_is_not_given_and_leaves_the_disk(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("short", ttl_s=2)
    producer.send("long", ttl_s=200)
    rig.advance(3)
    assert len(held_by(rig.store.load()).messages) == 1
    rig.crash()
    assert rig.client().consumer("orders").bodies == ["long"]


def test_what_is_no_message_is_rejected(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    number = producer.send_raw(b"not AMQP")
    outcome = producer.outcomes[number]
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:decode-error"


def test_a_producer_has_credit_and_gets_it_back(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    assert producer.link.credit == LINK_CREDIT
    for _ in range(LINK_CREDIT):
        producer.send()
    assert producer.link.credit > 0


def test_mixed_settlement_is_answered_unsettled(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("mixed")
    (received,) = client.consumer("orders", settle_modes=(SEND_MIXED, 0)).received
    received.give(ACCEPTED)
    assert held_by(rig.store.load()).messages == []

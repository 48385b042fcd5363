"""What is a client refused, and what does a sender without an address hear, through real sockets? One to three routers.

Transfers beyond the promise and messages too large: `test_credit_over_sockets.py`.
"""

from __future__ import annotations

import time

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import CAPACITY, new_address, slow
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode
from wire.message import Message, encode

LARGE_BYTES = 300_000
AT_ONCE_S = 1.0


# Attaches
@pytest.mark.parametrize("router", BETWEEN)
@pytest.mark.parametrize("direction", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("address", "condition"),
    [("unknown", "amqp:not-found"), ("closed", "amqp:not-found"), ("secret", "amqp:unauthorized-access")],
)
def test_an_attach_is_refused_with_a_sentence_and_other_links_stay(rows, router, direction, address, condition):
    with WireClient(rows.port(router)) as client:
        other = client.sender("work.other")
        refused = getattr(client, direction)(address)
        error = client.wait_detached(refused).error
        assert error.condition == condition
        assert address in error.description
        assert (refused.remote_target if direction == "sender" else refused.remote_source).is_null
        assert other.is_open


@pytest.mark.parametrize("router", BETWEEN)
def test_a_coordinator_is_refused_with_a_sentence_and_other_links_stay(rows, router):
    with WireClient(rows.port(router)) as client:
        other = client.sender("work.other")
        error = client.wait_detached(client.coordinator()).error
        assert error.condition == "amqp:not-implemented"
        assert error.description
        assert other.is_open


# Anonymous senders
@pytest.fixture
def anonymous(producer):
    """A sender with all its credit."""
    sender = producer.sender(None)
    producer.wait(lambda: sender.credit == CAPACITY, "credit, though nobody takes anything")
    return sender


def _wait_known(rows, address):
    """Until a producer at r1 would have credit: it knows of the consumer."""
    with WireClient(rows.port("r1")) as client:
        sender = client.sender(address)
        client.wait(lambda: sender.credit > 0, "credit")


def _wait_unknown(rows, address):
    """Until r1 knows that the consumer left."""

    def takers():
        return sum(each["takers"] for each in rows.snapshot("r1")["node"]["addresses"] if each["address"] == address)

    wait_until(lambda: takers() == 0, 30.0, "r1 to know that the consumer left")


def test_what_waits_for_one_address_is_overtaken_by_what_goes_to_others(rows, producer, consumer, anonymous):
    slow, quick = new_address("work"), new_address("work")
    receiver = consumer.receiver(slow)
    consumer.receiver(quick, credit=10)
    for address in (slow, quick):
        _wait_known(rows, address)
    waiting = [producer.send(anonymous, number, to=slow) for number in range(3)]
    overtaking = producer.send(anonymous, "quick", to=quick)
    producer.step()
    assert [each.body for each in consumer.wait_arrived(1)] == ["quick"]
    consumer.settle_all()
    assert producer.wait_outcome(overtaking) == ACCEPTED
    receiver.grant(10)
    assert [each.body for each in consumer.wait_arrived(3)] == [0, 1, 2], "in order"
    consumer.settle_all()
    assert [producer.wait_outcome(number) for number in waiting] == [ACCEPTED] * 3


def test_its_credit_comes_back_as_its_messages_are_settled(rows, producer, consumer, anonymous, work):
    consumer.receiver(work, credit=1000)
    _wait_known(rows, work)
    for _ in range(CAPACITY):
        producer.send(anonymous, "x", to=work)
    producer.step()
    consumer.wait_arrived(CAPACITY)
    consumer.settle_all()
    wait_with((producer, consumer), lambda: len(producer.outcomes) == CAPACITY, "all outcomes")
    producer.wait(lambda: anonymous.credit > 0, "credit")


@slow
def lose_the_consumer_of_an_anonymous_sender(rows, egress):
    """Outcomes while it was there, and when it was gone."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer, WireClient(rows.port(egress)) as consumer:
        sender = producer.sender(None)
        receiver = consumer.receiver(address, credit=10)
        _wait_known(rows, address)
        number = producer.send(sender, "x", to=address)
        producer.step()
        consumer.wait_arrived(1)
        consumer.settle_all()
        before = producer.wait_outcome(number)
        receiver.close()
        consumer.step()
        _wait_unknown(rows, address)
        return before, producer.wait_outcome(producer.send(sender, "x", to=address))


def test_a_message_whose_consumer_left_is_released(at_once, egress):
    assert at_once(lose_the_consumer_of_an_anonymous_sender, egress) == (ACCEPTED, RELEASED)


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("unknown", "amqp:not-found"),
        ("closed", "amqp:not-found"),
        ("secret", "amqp:unauthorized-access"),
        ("", "amqp:invalid-field"),
    ],
)
@pytest.mark.parametrize("router", BETWEEN)
def test_unknown_closed_and_forbidden_addresses_are_rejected_with_a_sentence(rows, router, address, condition):
    with WireClient(rows.port(router)) as client:
        sender = client.sender(None)
        client.wait(lambda: sender.credit > 0, "credit")
        outcome = client.wait_outcome(client.send(sender, "x", to=address))
        assert (outcome.kind, outcome.error.condition) == (OutcomeCode.REJECTED, condition)
        assert outcome.error.description
        assert sender.is_open


def test_a_delivery_of_a_transaction_is_rejected_and_the_sender_goes_on(rows, producer, consumer, anonymous, work):
    consumer.receiver(work, credit=10)
    _wait_known(rows, work)
    refused = producer.send_in_transaction(anonymous, "in a transaction", to=work)
    producer.send(anonymous, "after", to=work)
    assert producer.wait_outcome(refused).kind is OutcomeCode.REJECTED
    assert [each.body for each in consumer.wait_arrived(1)] == ["after"]
    consumer.settle_all()


def _wait_released_at_once(producer, anonymous, to):
    """Once is enough on a busy machine: what waits for a path is never released earlier than 2 s after it was sent."""

    def is_released_at_once():
        begun = time.monotonic()
        assert producer.wait_outcome(producer.send(anonymous, "x", to=to)) == RELEASED
        return time.monotonic() - begun < AT_ONCE_S

    wait_until(is_released_at_once, 30.0, f"a message to {to} to be released at once")


def test_what_nobody_takes_is_released_at_once(producer, anonymous):
    for to in ("work.nobody", "news.nobody", "amqp:/_topo/0/r9/temp.gone"):
        _wait_released_at_once(producer, anonymous, to)


def test_a_dead_dynamic_address_is_released_at_once(rows, producer, anonymous, egress):
    mortal = WireClient(rows.port(egress), container_id="mortal")
    address = mortal.receiver(None, credit=10, is_dynamic=True).remote_source.address
    number = producer.send(anonymous, "alive", to=address)
    wait_with((producer, mortal), lambda: mortal.arrived, "the message")
    mortal.settle_all()
    assert producer.wait_outcome(number) == ACCEPTED
    rows.lose(mortal, egress)
    _wait_released_at_once(producer, anonymous, address)


def test_a_large_message_finds_its_consumer_or_is_released_and_stops_nobody(rows, producer, consumer, anonymous, work):
    consumer.receiver(work, credit=10)
    _wait_known(rows, work)
    messages = [encode(Message(body=bytes(LARGE_BYTES), to=to)) for to in ("work.nobody", work)]
    lost, found = (producer.send_bytes(anonymous, message) for message in messages)
    small = producer.send(anonymous, "small", to=work)
    came = []

    def have_both():
        came.extend(each.body for each in consumer.settle_all())
        return len(came) == 2

    wait_with((producer, consumer), have_both, "both messages")
    assert came == [bytes(LARGE_BYTES), "small"]
    assert [producer.wait_outcome(number) for number in (lost, found, small)] == [RELEASED, ACCEPTED, ACCEPTED]

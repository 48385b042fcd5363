"""What becomes of an anycast delivery, and of a producer's credit, through real sockets? One to three routers.

Rows that need no more than a producer and a consumer that settles are in `test_credit_over_sockets.py`.
"""

from __future__ import annotations

import pytest

from mesh_tests.egress import BETWEEN, egress_at
from mesh_tests.live.conftest import CAPACITY, LIMITED, new_address
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.outcomes import EVERY_KIND, outcome_id, told
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

GIVEN_BACK_S = 7.0
"""What nobody takes waits 2 s for somebody who does."""
LARGE_BYTES = 200_000
ELSEWHERE = {"r1": "r2", "r2": "r3", "r3": "r1"}


def send(client, link, body="x", **more):
    """As soon as there is credit; the number of the delivery."""
    client.wait(lambda: link.credit > 0, "credit")
    number = client.send(link, body, **more)
    client.step()
    return number


@pytest.fixture
def other(rows, egress):
    """A consumer at another router than the first."""
    with WireClient(rows.port(ELSEWHERE[egress]), container_id="other") as client:
        yield client


# Credit
def test_a_producer_whose_consumer_stopped_runs_down_to_its_float(producer, consumer, work):
    receiver = consumer.receiver(work, credit=5)
    sender = producer.sender(work)
    producer.wait(lambda: sender.credit > 0, "credit")
    sent = _send_what_credit_allows(producer, sender)
    consumer.wait_arrived(5)
    sent += _send_what_credit_allows(producer, sender)
    assert sent <= 5 + 3
    receiver.grant(100)
    wait_with((producer, consumer), lambda: len(consumer.arrived) == sent, "what was held")
    _settle_all(consumer)


def _send_what_credit_allows(client, link, quiet_steps=10):
    """Until there was none for a while; how many."""
    sent = quiet = 0
    while quiet < quiet_steps:
        quiet += 1
        while link.credit > 0:
            client.send(link, sent)
            sent, quiet = sent + 1, 0
        client.step(0.02)
    return sent


def _settle_all(client, outcome=ACCEPTED):
    arrived, client.arrived = client.arrived, []
    for each in arrived:
        each.settle(outcome)
    client.step()


def test_credit_comes_back_with_each_half_that_is_settled(producer, consumer, work):
    consumer.receiver(work, credit=1000)
    sender = producer.sender(work)
    for _ in range(CAPACITY):
        send(producer, sender)
    consumer.wait_arrived(CAPACITY)
    assert sender.credit <= 1
    _settle_all(consumer)
    producer.wait(lambda: sender.credit >= CAPACITY / 2, "credit")


# Outcomes
@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_every_outcome_reaches_the_producer_unchanged(producer, consumer, work, outcome):
    consumer.receiver(work, credit=10)
    number = send(producer, producer.sender(work))
    consumer.wait_arrived(1).pop().settle(outcome)
    consumer.step()
    assert told(producer.wait_outcome(number)) == told(outcome)


# A consumer is lost, or gives back
def lose_a_consumer(rows, egress):
    """Outcomes of what it had, and of what it never got; nobody else takes it."""
    with WireClient(rows.port("r1")) as producer:
        mortal, written, unwritten = _one_written_and_one_not(rows, producer, egress, new_address("work"))
        mortal.kill()
        return producer.wait_outcome(written), producer.wait_outcome(unwritten, GIVEN_BACK_S)


def test_what_a_lost_consumer_never_got_is_released_and_what_it_had_is_modified(at_once, egress):
    assert at_once(lose_a_consumer, egress) == (MODIFIED_FAILED, RELEASED)


def lose_a_consumer_beside_another(rows, egress):
    """The same, when another takes it; and what that got."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer, WireClient(rows.port(ELSEWHERE[egress])) as other:
        mortal, written, unwritten = _one_written_and_one_not(rows, producer, egress, address)
        other.receiver(address, credit=10)
        _wait_takers(rows, address, 2)
        mortal.kill()
        wait_with((producer, other), lambda: other.arrived, "the delivery")
        bodies = [each.body for each in other.arrived]
        _settle_all(other)
        return producer.wait_outcome(written), producer.wait_outcome(unwritten), bodies


def test_what_a_lost_consumer_never_got_goes_to_another(at_once, egress):
    assert at_once(lose_a_consumer_beside_another, egress) == (MODIFIED_FAILED, ACCEPTED, ["unwritten"])


def _one_written_and_one_not(rows, producer, egress, address):
    """A consumer, and the numbers of what it holds and of what came as far as it can without its credit."""
    mortal = WireClient(rows.port(egress), container_id="mortal")
    mortal.receiver(address, credit=2)
    sender = producer.sender(address)
    first, written = send(producer, sender), send(producer, sender, "written")
    mortal.wait_arrived(2).pop(0).settle(ACCEPTED)
    mortal.step()
    assert producer.wait_outcome(first) == ACCEPTED
    return mortal, written, send(producer, sender, "unwritten")


def test_what_a_taker_released_is_offered_to_another_before_the_producer_hears(rows, producer, consumer, other, work):
    consumer.receiver(work, credit=10)
    number = send(producer, producer.sender(work))
    first = consumer.wait_arrived(1).pop()
    other.receiver(work, credit=10)
    _wait_takers(rows, work, 2)
    first.settle(RELEASED)
    consumer.step()
    other.wait_arrived(1)
    assert number not in producer.outcomes
    _settle_all(other)
    assert producer.wait_outcome(number) == ACCEPTED
    consumer.step(0.1)
    assert not consumer.arrived


def test_what_every_taker_released_is_released(rows, producer, consumer, other, work):
    consumer.receiver(work, credit=10)
    number = send(producer, producer.sender(work))
    first = consumer.wait_arrived(1).pop()
    other.receiver(work, credit=10)
    _wait_takers(rows, work, 2)
    for client, arrived in ((consumer, first), (other, None)):
        (arrived or client.wait_arrived(1).pop()).settle(RELEASED)
        client.step()
    assert producer.wait_outcome(number, GIVEN_BACK_S) == RELEASED


def _wait_takers(rows, address, count):
    """Until r1 has so many to choose from."""

    def has_takers():
        addresses = rows.snapshot("r1")["node"]["addresses"]
        return any(each["address"] == address and each["takers"] == count for each in addresses)

    wait_until(has_takers, 10, f"{count} takers")


# The last taker leaves
def cross_the_last_taker(rows, egress):
    """Outcomes of deliveries that are sent with credit that is being taken back."""
    address = new_address("work")
    with WireClient(rows.port("r1")) as producer, WireClient(rows.port(egress)) as consumer:
        receiver = consumer.receiver(address, credit=100)
        sender = producer.sender(address)
        producer.wait(lambda: sender.credit > 10, "credit")
        receiver.close()
        consumer.wait(lambda: receiver.is_gone, "the answer to the detach")
        numbers = [producer.send(sender, "crosses") for _ in range(10)]
        outcomes = [producer.wait_outcome(number, GIVEN_BACK_S) for number in numbers]
        producer.wait(lambda: sender.credit == 0, "credit to be taken back")
        assert not sender.is_draining
        return outcomes


# Not strict: the reduction of credit may be there first. In the simulation it is strict.
@egress_at(*BETWEEN)
def test_deliveries_that_cross_the_leaving_of_the_last_taker_are_released(at_once, egress):
    assert at_once(cross_the_last_taker, egress) == [RELEASED] * 10


def send_to_a_dead_dynamic_address(rows, egress):
    """Outcomes while its consumer lives, and when it is dead."""
    mortal = WireClient(rows.port(egress), container_id="mortal")
    replies = mortal.receiver(None, credit=10, is_dynamic=True)
    with WireClient(rows.port("r1")) as producer:
        sender = producer.sender(replies.remote_source.address)
        number = send(producer, sender)
        mortal.wait_arrived(1).pop().settle(ACCEPTED)
        mortal.step()
        alive = producer.wait_outcome(number)
        crossing = producer.send(sender, "crosses")
        mortal.kill()
        dead = producer.wait_outcome(crossing, GIVEN_BACK_S)
        producer.wait(lambda: sender.credit == 0, "credit to be taken back", GIVEN_BACK_S)
        return alive, dead


@egress_at(*BETWEEN)
def test_what_is_sent_to_a_dynamic_address_whose_consumer_is_lost_is_given_back(at_once, egress):
    alive, dead = at_once(send_to_a_dead_dynamic_address, egress)
    assert alive == ACCEPTED
    assert dead in (RELEASED, MODIFIED_FAILED)


# The producer dies
def test_a_message_whose_producer_dies_in_the_middle_is_aborted(rows, consumer, work):
    receiver = consumer.receiver(work, credit=10)
    dying = WireClient(rows.port("r1"), container_id="dying")
    sender = dying.sender(work)
    dying.wait(lambda: sender.credit > 0, "credit")
    dying.send_bytes(sender, bytes(LARGE_BYTES), is_complete=False)
    wait_with((dying, consumer), lambda: consumer.partial_bytes(receiver) == LARGE_BYTES, "the first part")
    dying.kill()
    consumer.wait(lambda: consumer.aborted == 1, "the abort")
    assert not consumer.arrived


def test_the_complete_messages_of_a_producer_that_dies_go_on(rows, consumer, work):
    receiver = consumer.receiver(work, credit=10)
    dying = WireClient(rows.port("r1"), container_id="dying")
    sender = dying.sender(work)
    dying.wait(lambda: sender.credit > 4, "credit")
    for number in range(5):
        dying.send(sender, number)
    dying.step()
    dying.kill()
    assert [each.body for each in consumer.wait_arrived(5)] == list(range(5))
    _settle_all(consumer)
    assert receiver.is_open


# Pre-settled
def test_pre_settled_deliveries_are_held_back_by_credit_and_none_is_lost(producer, consumer, work):
    receiver = consumer.receiver(work, credit=5)
    sender = producer.sender(work)
    for _ in range(5):
        send(producer, sender, is_settled=True)
    consumer.wait_arrived(5)
    held = 0
    while producer.step(0.1) or sender.credit > 0:
        producer.send(sender, "held", is_settled=True)
        held += 1
        assert held <= 3
    consumer.step(0.1)
    assert len(consumer.arrived) == 5
    receiver.grant(1000)
    consumer.step()
    for _ in range(3 * CAPACITY):
        send(producer, sender, is_settled=True)
    wait_with((producer, consumer), lambda: len(consumer.arrived) == 5 + held + 3 * CAPACITY, "all of them")
    assert all(each.is_settled for each in consumer.arrived)


# Transactions
@egress_at(*BETWEEN)
@pytest.mark.parametrize("kind", ["work", "news"])
def test_a_delivery_of_a_transaction_is_rejected(rows, consumer, work, news, kind):
    """Through the other listener: it is no different there."""
    address = {"work": work, "news": news}[kind]
    consumer.receiver(address, credit=10)
    with WireClient(rows.port("r1", LIMITED)) as client:
        sender = client.sender(address)
        client.wait(lambda: sender.credit > 0, "credit")
        number = client.send_in_transaction(sender, "x")
        wait_with((client, consumer), lambda: number in client.outcomes or consumer.arrived, "anything")
        _settle_all(consumer)
        assert client.wait_outcome(number).kind.name == "REJECTED"

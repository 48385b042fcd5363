"""What becomes of an anycast delivery, and of a producer's credit, through real sockets? One to three routers.

Rows that need no more than a producer and a consumer that settles are in `test_credit_over_sockets.py`.
"""

from __future__ import annotations

import pytest

from mesh_tests.live.row_mesh import CAPACITY, LIMITED, new_address
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.outcomes import EVERY_KIND, outcome_id, told

FLOATS = 3
LARGE_BYTES = 200_000


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
    consumer.settle_all()


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


def test_credit_comes_back_with_each_half_that_is_settled(producer, consumer, work):
    consumer.receiver(work, credit=1000)
    sender = producer.sender(work)
    for _ in range(CAPACITY):
        producer.send_when_due(sender)
    consumer.wait_arrived(CAPACITY)
    assert sender.credit <= 1
    consumer.settle_all()
    producer.wait(lambda: sender.credit >= CAPACITY / 2, "credit")


@pytest.mark.parametrize("kind", ["work", "news"])
def test_a_consumer_that_settles_none_until_it_has_all_gets_small_and_large_ones_in_order(producer, consumer, kind):
    address = new_address(kind)
    consumer.receiver(address, credit=CAPACITY)
    sender = producer.sender(address)
    for number in range(8):
        wait_with((producer, consumer), lambda: sender.credit > 0, "credit")
        producer.send(sender, bytes([number]) * (LARGE_BYTES if number % 2 else 1))
    wait_with((producer, consumer), lambda: len(consumer.arrived) == 8, "all of them")
    assert [each.body[0] for each in consumer.arrived] == list(range(8))
    assert not producer.outcomes
    consumer.settle_all()
    producer.wait(lambda: len(producer.outcomes) == 8, "the outcomes")


# Outcomes
@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_every_outcome_reaches_the_producer_unchanged(producer, consumer, work, outcome):
    consumer.receiver(work, credit=10)
    number = producer.send_when_due(producer.sender(work))
    consumer.wait_arrived(1).pop().settle(outcome)
    consumer.step()
    assert told(producer.wait_outcome(number)) == told(outcome)


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
    consumer.settle_all()
    assert receiver.is_open


# Pre-settled
def test_pre_settled_deliveries_are_held_back_by_credit_and_none_is_lost(producer, consumer, work):
    receiver = consumer.receiver(work, credit=5)
    sender = producer.sender(work)
    for _ in range(5):
        producer.send_when_due(sender, is_settled=True)
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
        producer.send_when_due(sender, is_settled=True)
    wait_with((producer, consumer), lambda: len(consumer.arrived) == 5 + held + 3 * CAPACITY, "all of them")
    assert all(each.is_settled for each in consumer.arrived)


def test_pre_settled_deliveries_to_a_consumer_that_dies_are_lost_and_the_next_gets_all_that_come_after(
    rows, producer, egress, work
):
    mortal = WireClient(rows.port(egress), container_id="mortal")
    mortal.receiver(work, credit=2)
    sender = producer.sender(work)
    for _ in range(2):
        producer.send_when_due(sender, "lost", is_settled=True)
    wait_with((producer, mortal), lambda: len(mortal.arrived) == 2, "both")
    mortal.kill()
    with WireClient(rows.port(egress), container_id="next") as other:
        other.receiver(work, credit=1000)
        sent = 0

        def go_on():
            nonlocal sent
            while sender.credit > 0:
                producer.send(sender, sent, is_settled=True)
                sent += 1
            return len(other.arrived) >= 3 * CAPACITY

        wait_with((producer, other), go_on, "the stream to go on")
        came = [each.body for each in other.arrived]
    # What was on the way when its consumer died may be lost with the circuit.
    assert came[0] <= FLOATS
    assert came == list(range(came[0], came[0] + len(came)))


# Transactions
@pytest.mark.parametrize("kind", ["work", "news", "shards"])
def test_a_delivery_of_a_transaction_is_rejected(rows, consumer, kind):
    """Through the other listener: it is no different there."""
    address = new_address(kind)
    consumer.receiver(address, credit=10)
    with WireClient(rows.port("r1", LIMITED)) as client:
        sender = client.sender(address)
        client.wait(lambda: sender.credit > 0, "credit")
        number = client.send_in_transaction(sender, "x")
        wait_with((client, consumer), lambda: number in client.outcomes or consumer.arrived, "anything")
        consumer.settle_all()
        assert client.wait_outcome(number).kind.name == "REJECTED"

"""Does a consumer that takes one message at a time get all that is for it, and each producer its turn? By sockets."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import new_address
from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED

PRODUCERS_EACH = 4
TURNS = 3
MOST_TIMES_THE_LEAST = 4
DONE_S = 20.0
MESSAGES = 20


def test_twelve_producers_at_three_routers_share_a_consumer_with_credit_one(rows, consumer, work):
    receiver = consumer.receiver(work, credit=1)
    with ExitStack() as stack:
        clients = [stack.enter_context(WireClient(rows.port(router))) for router in BETWEEN]
        senders = {client.sender(work): client for client in clients for _ in range(PRODUCERS_EACH)}
        owners = {}

        def accepted():
            shares = dict.fromkeys(senders, 0)
            for (client, number), link in owners.items():
                shares[link] += number in client.outcomes
            return shares.values()

        def go_on():
            for link, client in senders.items():
                while link.credit > 0:
                    owners[client, client.send(link, "x")] = link
            receiver.grant(len(consumer.settle_all()))
            return min(accepted()) >= TURNS

        wait_with((*clients, consumer), go_on, f"{TURNS} turns of each", DONE_S)
        assert max(accepted()) <= MOST_TIMES_THE_LEAST * min(accepted())


# A consumer who rests
@pytest.fixture
def other(rows, egress):
    """At a router that has no consumer yet."""
    with WireClient(rows.port("r2" if egress == "r3" else "r3"), container_id="other") as other:
        yield other


def test_what_waits_at_a_consumer_without_credit_comes_to_one_at_another_router(producer, consumer, other, work):
    consumer.receiver(work, credit=0)
    other.receiver(work, credit=100)
    sender = producer.sender(work)
    numbers = [producer.send_when_due(sender, number) for number in range(MESSAGES)]
    wait_with((producer, consumer, other), lambda: len(other.arrived) == MESSAGES, "all of them", DONE_S)
    assert sorted(each.body for each in other.settle_all()) == list(range(MESSAGES))
    other.step()
    assert [producer.wait_outcome(number) for number in numbers] == [ACCEPTED] * MESSAGES
    assert not consumer.arrived


# A queue of four shards
def take_one_by_one(consumer, receiver, count):
    """Bodies, in order."""
    bodies = []
    for _ in range(count):
        consumer.wait_arrived(1)
        bodies += [each.body for each in consumer.settle_all()]
        receiver.grant(1)
    return bodies


@pytest.mark.parametrize("full", ["b2", "b4"])
def test_a_consumer_with_credit_one_empties_the_one_shard_of_four_that_has_messages(producer, consumer, full):
    sender = producer.sender(f"heap.{full}")
    numbers = [producer.send_when_due(sender, number) for number in range(MESSAGES)]
    assert [producer.wait_outcome(number) for number in numbers] == [ACCEPTED] * MESSAGES
    receiver = consumer.receiver("heap", credit=1)
    assert take_one_by_one(consumer, receiver, MESSAGES) == list(range(MESSAGES))


def test_a_consumer_with_credit_one_that_waits_gets_what_comes_to_any_shard(producer, consumer):
    address = new_address("shards")
    receiver, sender = consumer.receiver(address, credit=1), producer.sender(address)
    for number in range(MESSAGES):
        producer.send_when_due(sender, number)
        assert take_one_by_one(consumer, receiver, 1) == [number]

"""Does everybody settle as it was agreed at attach, in one step or in two, through sockets? [2.7.3], [2.8.2]"""

from __future__ import annotations

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import CAPACITY, new_address
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.outcomes import EVERY_KIND, outcome_id, told
from wire.delivery import ACCEPTED, RELEASED
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED

SEND_MODES = {SEND_MIXED: "mixed", SEND_UNSETTLED: "unsettled", SEND_SETTLED: "settled"}
RECEIVE_MODES = {RECEIVE_FIRST: "first", RECEIVE_SECOND: "second"}
TWO_STEPS = (SEND_MIXED, RECEIVE_SECOND)

sends = pytest.mark.parametrize("sends", SEND_MODES, ids=lambda mode: f"sends {SEND_MODES[mode]}")
wants = pytest.mark.parametrize("wants", SEND_MODES, ids=lambda mode: f"wants {SEND_MODES[mode]}")
settles = pytest.mark.parametrize("settles", RECEIVE_MODES, ids=lambda mode: f"settles {RECEIVE_MODES[mode]}")
asks = pytest.mark.parametrize("asks", RECEIVE_MODES, ids=lambda mode: f"asks to settle {RECEIVE_MODES[mode]}")
kinds = pytest.mark.parametrize("kind", ["work", "news"])


def unsettled_in(rows, address):
    """Deliveries that a router still knows of."""
    snapshots = [rows.snapshot(router)["node"]["addresses"] for router in BETWEEN]
    return sum(each["unsettled"] for addresses in snapshots for each in addresses if each["address"] == address)


@sends
@asks
@wants
@settles
def test_messages_pass_between_any_two_modes_and_nothing_stays_unsettled(
    rows, producer, consumer, work, sends, asks, wants, settles
):
    consumer.receiver(work, credit=10, send_mode=wants, receive_mode=settles)
    sender = producer.sender(work, modes=(sends, asks))
    assert sender.remote_settle_modes[0] == sends
    kinds = {SEND_MIXED: [False, True], SEND_UNSETTLED: [False], SEND_SETTLED: [True]}[sends]
    numbers = [producer.send_when_due(sender, is_settled=is_settled) for is_settled in kinds]
    wait_with((producer, consumer), lambda: len(consumer.arrived) == len(kinds), "all messages")
    came_settled = [each.is_settled for each in consumer.arrived]
    assert came_settled == (kinds if wants == SEND_MIXED else [wants == SEND_SETTLED] * len(kinds))
    unsettled = [each for each in consumer.arrived if not each.is_settled]
    for each in unsettled:
        each.propose(ACCEPTED) if settles == RECEIVE_SECOND else each.settle(ACCEPTED)
    wait_with(
        (producer, consumer), lambda: not any(map(producer.is_unsettled, numbers[: kinds.count(False)])), "an end"
    )
    if settles == RECEIVE_SECOND:
        # What came settled waits for nobody, and may be confirmed before what was sent first.
        wait_with((producer, consumer), lambda: all(each in consumer.confirmed for each in unsettled), "the last word")
    wait_with((producer, consumer), lambda: not unsettled_in(rows, work), "every router to forget them")


@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_the_consumer_settles_after_the_producer_has(producer, consumer, work, outcome):
    producer.answers = False
    consumer.receiver(work, credit=10, receive_mode=RECEIVE_SECOND)
    number = producer.send_when_due(producer.sender(work, modes=TWO_STEPS))
    producer.step()
    (arrived,) = consumer.wait_arrived(1)
    arrived.propose(outcome)
    consumer.step()
    assert told(producer.wait_outcome(number)) == told(outcome)
    consumer.step(0.05)
    assert producer.is_unsettled(number)
    assert not consumer.confirmed
    producer.settle(number)
    wait_with((producer, consumer), lambda: consumer.confirmed == [arrived], "the last word")


@kinds
def test_a_consumer_that_is_told_all_will_come_unsettled_gets_nothing_settled(producer, consumer, kind):
    address = new_address(kind)
    receiver = consumer.receiver(address, credit=10, send_mode=SEND_UNSETTLED)
    producer.send_when_due(producer.sender(address), is_settled=True)
    producer.step()
    (arrived,) = consumer.wait_arrived(1)
    assert receiver.remote_settle_modes[0] == SEND_UNSETTLED
    assert not arrived.is_settled


def test_a_consumer_that_waits_for_the_producer_is_told_when_that_is_lost(rows, consumer, work):
    consumer.receiver(work, credit=10, receive_mode=RECEIVE_SECOND)
    dying = WireClient(rows.port("r1"), container_id="dying")
    dying.send_when_due(dying.sender(work, modes=TWO_STEPS))
    dying.step()
    (arrived,) = consumer.wait_arrived(1)
    dying.kill()
    arrived.propose(ACCEPTED)
    consumer.wait(lambda: consumer.confirmed == [arrived], "the last word")


def test_a_consumer_that_waits_is_told_though_the_producer_leaves_settling_to_its_router(producer, consumer, work):
    producer.answers = False
    consumer.receiver(work, credit=10, receive_mode=RECEIVE_SECOND)
    number = producer.send_when_due(producer.sender(work, modes=(SEND_UNSETTLED, RECEIVE_FIRST)))
    producer.step()
    (arrived,) = consumer.wait_arrived(1)
    arrived.propose(ACCEPTED)
    wait_with((producer, consumer), lambda: not producer.is_unsettled(number), "the router to settle")
    wait_with((producer, consumer), lambda: consumer.confirmed == [arrived], "the last word")


@kinds
def test_an_outcome_that_the_consumer_settled_reaches_a_producer_that_settles_last_settled(producer, consumer, kind):
    producer.answers = False
    address = new_address(kind)
    consumer.receiver(address, credit=10)
    sender = producer.sender(address, modes=TWO_STEPS)
    number = producer.send_when_due(sender)
    producer.step()
    consumer.wait_arrived(1).pop().settle(ACCEPTED)
    consumer.step()
    assert producer.wait_outcome(number) == ACCEPTED
    wait_with((producer, consumer), lambda: not producer.is_unsettled(number), "the consumer's settlement")


def test_a_consumer_of_a_multicast_that_waits_is_told_too(producer, consumer, news):
    consumer.receiver(news, credit=10, receive_mode=RECEIVE_SECOND)
    number = producer.send_when_due(producer.sender(news))
    producer.step()
    (arrived,) = consumer.wait_arrived(1)
    arrived.propose(ACCEPTED)
    wait_with((producer, consumer), lambda: consumer.confirmed == [arrived], "the last word")
    assert producer.wait_outcome(number) == ACCEPTED


def test_the_credit_of_a_delivery_settled_in_two_steps_returns(producer, consumer, work):
    consumer.receiver(work, credit=1000, receive_mode=RECEIVE_SECOND)
    sender = producer.sender(work, modes=TWO_STEPS)
    counts = {"sent": 0, "proposed": 0}

    def go_on():
        while sender.credit > 0 and counts["sent"] < 3 * CAPACITY:
            producer.send(sender, "x")
            counts["sent"] += 1
        for each in consumer.arrived[counts["proposed"] :]:
            each.propose(ACCEPTED)
            counts["proposed"] += 1
        return len(consumer.confirmed) == 3 * CAPACITY

    wait_with((producer, consumer), go_on, "the last word on all of them")


def test_a_producer_that_settles_before_there_is_an_outcome_wants_none(producer, consumer, work):
    consumer.receiver(work, credit=10)
    sender = producer.sender(work)
    number = producer.send_when_due(sender)
    producer.step()
    consumer.wait_arrived(1)
    producer.settle(number)
    producer.sender(work)  # an answer to what comes behind it: it was read
    consumer.settle_all(RELEASED)
    following = producer.send_when_due(sender, "following")
    assert [each.body for each in consumer.wait_arrived(1)] == ["following"]
    consumer.settle_all()
    assert producer.wait_outcome(following) == ACCEPTED
    assert number not in producer.outcomes

"""A consumer whose link takes small messages only gets those, others the rest, and it hears when nothing is left."""

from typing import Any

import pytest

from broker.events import ConsumerTooSmall
from mesh_tests.unit.broker.rig import Consumer, Rig
from wire.delivery import ACCEPTED, RELEASED
from wire.terminus import DistributionMode, Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
LARGE, SMALL = "L" * 5000, "s"
MOST = 1000


def fill(rig: Rig, *bodies: str, address: str = "orders") -> None:
    producer = rig.client().producer(address)
    for body in bodies:
        assert producer.outcomes[producer.send(body)] == ACCEPTED


def small(rig: Rig, address: str = "orders", **fields: Any) -> Consumer:
    return rig.client("small").consumer(address, max_message_bytes=MOST, **fields)


def was_told(consumer: Consumer) -> bool:
    if consumer.detached is None:
        return False
    assert consumer.detached[1] is not None
    assert consumer.detached[1].condition == "amqp:link:message-size-exceeded"
    return True


def test_a_queue_is_not_emptied_by_a_consumer_that_takes_none_of_it(rig: Rig) -> None:
    fill(rig, *[LARGE] * 10)
    consumer = small(rig)
    assert (consumer.bodies, was_told(consumer)) == ([], True)
    assert consumer.detached is not None
    assert "1,000" in str(consumer.detached[1])
    other = rig.client().consumer("orders")
    assert (len(other.bodies), set(other.counts)) == (10, {0})
    (event,) = [event for event in rig.log if isinstance(event, ConsumerTooSmall)]
    assert (event.address, event.max_message_bytes) == ("orders", MOST)


def test_small_messages_behind_large_ones_go_to_who_can_take_them(rig: Rig) -> None:
    fill(rig, LARGE, SMALL, LARGE, SMALL)
    consumer = small(rig)
    assert (consumer.bodies, was_told(consumer)) == ([SMALL, SMALL], False)
    other = rig.client().consumer("orders")
    assert other.bodies == [LARGE, LARGE]


def test_a_consumer_is_told_when_it_has_taken_all_that_it_can(rig: Rig) -> None:
    fill(rig, LARGE, SMALL, SMALL)
    consumer = small(rig)
    consumer.received[0].give(ACCEPTED)
    assert not was_told(consumer), "it still has one"
    consumer.received[1].give(ACCEPTED)
    assert was_told(consumer)
    assert rig.client().consumer("orders").bodies == [LARGE]


def test_a_consumer_is_told_when_something_too_large_arrives(rig: Rig) -> None:
    consumer = small(rig)
    fill(rig, SMALL)
    consumer.received[0].give(ACCEPTED)
    assert not was_told(consumer)
    fill(rig, LARGE)
    assert was_told(consumer)


def test_a_consumer_without_credit_is_not_told(rig: Rig) -> None:
    fill(rig, LARGE)
    consumer = small(rig, credit=0)
    assert not was_told(consumer)
    consumer.link.grant(1)
    rig.run()
    assert was_told(consumer)


def test_while_another_consumer_takes_what_is_large_nobody_is_told(rig: Rig) -> None:
    other = rig.client().consumer("orders", credit=1)
    consumer = small(rig)
    fill(rig, LARGE, LARGE, SMALL)
    assert (other.bodies, consumer.bodies, was_told(consumer)) == ([LARGE], [SMALL], False)
    consumer.received[0].give(ACCEPTED)
    assert not was_told(consumer)
    other.received[0].give(ACCEPTED)
    other.link.grant(1)
    rig.run()
    assert other.bodies == [LARGE, LARGE]
    other.received[1].give(RELEASED, runs=False)
    other.close()
    assert was_told(consumer), "nobody else is there"


def test_a_larger_consumer_of_several_small_ones_is_the_last_to_be_told(rig: Rig) -> None:
    fill(rig, "m" * 1500)
    consumers = [rig.client(str(most)).consumer("orders", max_message_bytes=most) for most in (500, 1000)]
    larger = rig.client().consumer("orders", max_message_bytes=2000)
    assert [was_told(consumer) for consumer in consumers] == [True, True]
    assert larger.bodies == ["m" * 1500]


def test_the_subscription_of_a_small_consumer_stays(rig: Rig) -> None:
    consumer = small(rig, "news.#", name="reader", **DURABLE)
    fill(rig, LARGE, address="news.eu")
    assert was_told(consumer)
    assert consumer.detached is not None
    assert not consumer.detached[0], "not closed"
    again = rig.client("small").consumer("news.#", name="reader", **DURABLE)
    assert (again.bodies, again.counts) == ([LARGE], [0])


def test_what_its_header_makes_too_large_is_not_sent_either(rig: Rig) -> None:
    fill(rig, SMALL)
    first = rig.client().consumer("orders")
    size = len(first.received[0].data)
    first.rig.clients[-1].vanish()
    consumer = rig.client().consumer("orders", max_message_bytes=size)
    assert (consumer.bodies, was_told(consumer)) == ([], True)
    large_enough = rig.client().consumer("orders", max_message_bytes=size + 20)
    assert large_enough.counts == [1]


def test_a_drain_is_answered_though_large_messages_wait_for_others(rig: Rig) -> None:
    rig.client().consumer("orders", credit=0)
    fill(rig, LARGE, SMALL)
    consumer = small(rig, credit=0)
    consumer.link.request_drain(10)
    rig.run()
    assert (consumer.bodies, consumer.link.credit, consumer.detached) == ([SMALL], 0, None)


@pytest.mark.parametrize(("bodies", "is_told"), [([LARGE, LARGE], True), ([LARGE, SMALL], False)])
def test_a_browser_is_shown_what_it_takes(rig: Rig, bodies: list[str], is_told: bool) -> None:
    fill(rig, *bodies)
    browser = small(rig, distribution_mode=DistributionMode.COPY)
    assert (browser.bodies, was_told(browser)) == ([body for body in bodies if body == SMALL], is_told)
    assert rig.queue("orders").queue.available_count == 2

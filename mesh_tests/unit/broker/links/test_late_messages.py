"""What does a broker do with messages to a full queue over the link of a router that lets them wait?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from addressing.address import Address
from broker.links.incoming import LATE_LIMIT_BYTES
from broker.store.space import Space
from mesh_tests.unit.broker.rig import Producer, Rig, topology_with
from wire import delivery as deliveries
from wire.delivery import RELEASED
from wire.outcome import OutcomeCode
from wire.terminus import WAITS_WHEN_FULL

LIMIT = 3
GIB = 1 << 30
LARGE = "x" * 100_000
ADDRESSES = {
    "short.#": {"type": "queue", "max_messages": LIMIT},
    "heavy.#": {"type": "queue", "max_bytes": 3_000},
    "refuses.#": {"type": "queue", "max_messages": LIMIT, "when_full": "reject"},
}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES))
    yield rig
    rig.store.close()


@pytest.fixture
def router(rig: Rig) -> Producer:
    return rig.client().producer(None, capabilities=(WAITS_WHEN_FULL,))


def send(router: Producer, address: str, count: int, body: str = "") -> list[int]:
    return [router.send(f"{body}{number}", to=address) for number in range(count)]


def accepted(router: Producer, numbers: list[int]) -> int:
    found = [router.outcomes.get(number) for number in numbers]
    return sum(outcome is not None and outcome.kind is OutcomeCode.ACCEPTED for outcome in found)


def states(router: Producer) -> list[int]:
    return [deliveries.remote_state(delivery) for delivery in router._numbers]


@pytest.mark.parametrize(("address", "body"), [("short.1", ""), ("heavy.1", "x" * 2_000), ("short.1", LARGE)])
def test_late_messages_are_told_of_and_enter_in_order_as_the_queue_gets_room(
    rig: Rig, router: Producer, address: str, body: str
) -> None:
    numbers = send(router, address, 10, body)
    stored = accepted(router, numbers)
    assert 0 < stored < 10
    assert states(router) == [OutcomeCode.RECEIVED] * (10 - stored)
    other = send(router, "short.2", LIMIT)
    assert accepted(router, other) == LIMIT
    consumer = rig.client("consumer").consumer(address, credit=100)
    for _ in range(20):
        for received in [each for each in consumer.received if not each.is_given]:
            received.give(deliveries.ACCEPTED)
        rig.run()
    assert accepted(router, numbers) == 10
    assert [received.message.body for received in consumer.received] == [f"{body}{number}" for number in range(10)]


def test_a_producer_with_an_address_gets_credit_after_the_late_messages(rig: Rig, router: Producer) -> None:
    numbers = send(router, "short.1", LIMIT + 2)
    fixed = rig.client("fixed").producer("short.1")
    assert fixed.link.credit == 0
    consumer = rig.client("consumer").consumer("short.1", credit=100)
    for received in consumer.received[:2]:
        received.give(deliveries.ACCEPTED)
    rig.run()
    assert (accepted(router, numbers), fixed.link.credit) == (LIMIT + 2, 0)
    for received in consumer.received[2:3]:
        received.give(deliveries.ACCEPTED)
    rig.run()
    assert fixed.link.credit == 1


@pytest.mark.parametrize("body", ["", LARGE])
def test_a_late_message_that_the_router_recalls_is_released_and_the_others_stay(
    rig: Rig, router: Producer, body: str
) -> None:
    numbers = send(router, "short.1", LIMIT + 3, body)
    recalled = list(router._numbers)[1]
    deliveries.set_outcome(recalled, RELEASED)
    router.link.endpoint.mark_dirty()
    rig.run()
    assert router.outcomes[numbers[LIMIT + 1]] == RELEASED
    consumer = rig.client("consumer").consumer("short.1", credit=100)
    for _ in range(5):
        for received in [each for each in consumer.received if not each.is_given]:
            received.give(deliveries.ACCEPTED)
        rig.run()
    found = [received.message.body for received in consumer.received]
    assert found == [f"{body}{number}" for number in range(LIMIT + 3) if number != LIMIT + 1]


def test_late_messages_end_with_their_link_and_leave_the_room_to_others(rig: Rig, router: Producer) -> None:
    send(router, "short.1", LIMIT + 3)
    held = rig.node._message_store.existing_queue(Address("", "short.1"))
    assert held is not None
    assert held.coming_count == 3
    router.link.close()
    rig.run()
    assert held.coming_count == 0
    fixed = rig.client("fixed").producer("short.1")
    consumer = rig.client("consumer").consumer("short.1", credit=100)
    for received in consumer.received:
        received.give(deliveries.ACCEPTED)
    rig.run()
    assert len(consumer.received) == LIMIT
    assert fixed.link.credit > 0


def test_late_messages_wait_for_space_on_the_disk_too(rig: Rig, router: Producer) -> None:
    """What comes meanwhile stays behind them, and a producer with an address gets no credit before them."""
    numbers = send(router, "short.1", LIMIT + LIMIT)
    consumer = rig.client("consumer").consumer("short.1", credit=LIMIT)
    rig.node.on_space(Space("data", 10 * GIB, GIB // 2), rig.now)
    fixed = rig.client("fixed").producer("short.1")
    numbers.append(router.send("last", to="short.1"))
    for received in list(consumer.received):
        received.give(deliveries.ACCEPTED)
    rig.run()
    assert accepted(router, numbers) == LIMIT
    rig.node.on_space(Space("data", 10 * GIB, 5 * GIB), rig.now)
    rig.run()
    assert (accepted(router, numbers), fixed.link.credit) == (2 * LIMIT, 0)
    more = rig.client("more").consumer("short.1", credit=100)
    for _ in range(3):
        for received in [each for each in more.received if not each.is_given]:
            received.give(deliveries.ACCEPTED)
    assert [received.message.body for received in more.received] == ["3", "4", "5", "last"]


@pytest.mark.parametrize("is_recalled", [True, False])
def test_late_messages_enter_when_the_first_is_gone_that_waited_for_space_on_the_disk(
    rig: Rig, router: Producer, is_recalled: bool
) -> None:
    """The first late message alone is tried while others wait behind it, over the links of other routers, too."""
    send(router, "short.1", LIMIT + 1)
    other = rig.client("other").producer(None, capabilities=(WAITS_WHEN_FULL,))
    numbers = send(other, "short.1", 2)
    fixed = rig.client("fixed").producer("short.1")
    consumer = rig.client("consumer").consumer("short.1", credit=100)
    rig.node.on_space(Space("data", 10 * GIB, GIB // 2), rig.now)
    for received in list(consumer.received):
        received.give(deliveries.ACCEPTED)
    rig.run()
    if is_recalled:
        deliveries.set_outcome(next(iter(router._numbers)), RELEASED)
        router.link.endpoint.mark_dirty()
    else:
        router.link.close()
    rig.run()
    rig.node.on_space(Space("data", 10 * GIB, 5 * GIB), rig.now)
    rig.run()
    assert (accepted(other, numbers), fixed.link.credit > 0) == (2, True)


def test_after_a_restart_a_late_message_stands_where_it_entered_the_queue(rig: Rig, router: Producer) -> None:
    fixed = rig.client("fixed").producer("short.1")
    send(router, "short.1", LIMIT + 1)
    fixed.send("on credit that it had")
    consumer = rig.client("consumer").consumer("short.1", credit=2, name="first")
    for received in list(consumer.received):
        received.give(deliveries.ACCEPTED)
    rig.run()
    rig.restart()
    consumer = rig.client("consumer").consumer("short.1", credit=10)
    assert [received.message.body for received in consumer.received] == ["2", "on credit that it had", "3"]


def test_a_queue_that_refuses_when_it_is_full_has_no_late_messages(router: Producer) -> None:
    numbers = send(router, "refuses.1", LIMIT + 2)
    kinds = [outcome.kind for number in numbers if (outcome := router.outcomes[number]) is not None]
    assert kinds == [OutcomeCode.ACCEPTED] * LIMIT + [OutcomeCode.REJECTED] * 2


def test_late_messages_use_up_no_credit_of_the_link(router: Producer) -> None:
    before = router.link.credit
    for number in range(6_000):
        router.send("x", to="short.1" if number % 2 else f"short.{number}")
    assert router.link.credit >= before // 2
    assert len(router._numbers) == 3_000 - LIMIT


def test_late_messages_of_all_queues_have_a_limit_of_bytes_and_those_beyond_are_released(router: Producer) -> None:
    """The memory of a broker does not depend on how many producers send to full queues."""
    body = "x" * 60_000
    most = LATE_LIMIT_BYTES // len(body)
    numbers = [number for queue in ("short.1", "short.2") for number in send(router, queue, LIMIT + most, body)]
    kinds = Counter(None if outcome is None else outcome.kind for outcome in map(router.outcomes.get, numbers))
    assert kinds[OutcomeCode.ACCEPTED] == 2 * LIMIT
    assert most <= kinds[OutcomeCode.RELEASED] < 1.1 * most
    assert states(router).count(OutcomeCode.RECEIVED) == 2 * most - kinds[OutcomeCode.RELEASED]
    router.link.close()

"""One consumer that named a filter, and the groups of several addresses that the filter matches."""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.conftest import MakeRig
from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED
from wire.delivery_address import with_delivery_address, with_to
from wire.message import Message, encode

TEA, OIL = "prices.tea", "prices.oil"
STALL_S = 10.0


def message(body: str, **fields: Any) -> bytes:
    return encode(Message(body, **fields))


def addressed(address: str, *bodies: str) -> list[bytes]:
    return [with_delivery_address(message(body), address.encode()) for body in bodies]


def two_addresses(rig: Rig, credit: int = 10, limit: int = 10) -> tuple[Consumer, Producer, Producer]:
    filter_ = rig.filter()
    tea, oil = rig.matched(TEA, filter_), rig.matched(OIL, filter_)
    return rig.consumer(filter_, credit), rig.producer(tea, limit), rig.producer(oil, limit)


def test_the_consumer_gets_the_messages_of_all_matching_addresses_with_their_address(rig: Rig):
    consumer, tea, oil = two_addresses(rig)
    tea.send(message("1"))
    rig.run()
    oil.send(message("2"))
    rig.run()
    tea.send(message("3"))
    rig.run()
    assert consumer.messages == addressed(TEA, "1") + addressed(OIL, "2") + addressed(TEA, "3")
    consumer.answer()
    rig.run()
    assert [outcome for _, outcome in tea.outcomes] == [ACCEPTED] * 2
    assert [outcome for _, outcome in oil.outcomes] == [ACCEPTED]


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize("size", [1, 60_000, 300_000])
def test_the_consumer_of_the_exact_address_gets_the_message_to_the_byte(rig: Rig, size: int, is_settled: bool):
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_)
    exact, all_ = rig.consumer(tea), rig.consumer(filter_)
    producer = rig.producer(tea)
    producer.send(message("x" * size), settled=is_settled)
    rig.run()
    assert exact.messages == [message("x" * size)]
    assert all_.messages == addressed(TEA, "x" * size)


def test_bytes_that_are_no_message_stay_as_they_are(rig: Rig):
    consumer, tea, _ = two_addresses(rig)
    tea.send(b"no message", b"\x00\x53\x71\xd1\xff\xff")
    rig.run()
    assert consumer.messages == [b"no message", b"\x00\x53\x71\xd1\xff\xff"]


@pytest.mark.parametrize("to", [None, "", "elsewhere"])
def test_only_copies_of_the_filter_have_an_empty_to_filled_in(rig: Rig, to: str | None):
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_, fills_to=True)
    exact, all_ = rig.consumer(tea), rig.consumer(filter_)
    sent = message("1", to=to)
    rig.producer(tea).send(sent)
    rig.run()
    assert exact.messages == [sent]
    assert all_.messages == [with_delivery_address(with_to(sent, TEA.encode()), TEA.encode())]


def test_two_filters_that_match_get_a_copy_each(rig: Rig):
    one, other = rig.filter(), rig.filter("*.tea")
    tea = rig.matched(TEA, one, other)
    consumers = [rig.consumer(group) for group in (one, one, other)]
    producer = rig.producer(tea)
    producer.send(message("1"))
    rig.run()
    assert [consumer.messages for consumer in consumers] == [addressed(TEA, "1")] * 3
    for consumer in consumers:
        assert producer.outcomes == []
        consumer.answer()
        rig.run()
    assert producer.outcomes == [(message("1"), ACCEPTED)]


@pytest.mark.parametrize("fills_to", [False, True])
@pytest.mark.parametrize("length", [1, 100, 226, 235, 236, 243, 250, 256, 300, 900])
@pytest.mark.parametrize("annotated", [0, 100, 200, 230, 240, 300])
def test_a_copy_is_never_longer_than_the_largest_message_of_the_consumer(
    rig: Rig, fills_to: bool, length: int, annotated: int
):
    filter_ = rig.filter("#")
    address = "a" * length
    group = rig.matched(address, filter_, fills_to=fills_to)
    given = {"delivery_annotations": {"x-opt-a": "v" * annotated}, "subject": "s" * annotated} if annotated else {}
    sent = message("b", **given)
    copy = with_delivery_address(with_to(sent, address.encode()) if fills_to else sent, address.encode())
    least, enough = (
        rig.consumer(filter_, max_message_bytes=len(copy) - 1),
        rig.consumer(filter_, max_message_bytes=len(copy) + 40),
    )
    rig.producer(group).send(sent)
    rig.run()
    assert least.messages == []
    assert enough.messages == [copy]


# Joining and leaving
def test_an_address_joins_and_leaves_a_filter_with_its_consumers(rig: Rig):
    filter_ = rig.filter()
    consumer = rig.consumer(filter_)
    tea = rig.matched(TEA)
    producer = rig.producer(tea)
    assert producer.link.credit == 0
    tea.add_filter(filter_)
    tea.add_filter(filter_)
    rig.run()
    assert producer.link.credit == 10
    producer.send(message("1"))
    rig.run()
    assert consumer.messages == addressed(TEA, "1")
    tea.remove_filter(filter_)
    rig.run()
    assert producer.link.credit == 0
    assert not tea.has_taker


def test_messages_that_waited_for_a_consumer_go_out_as_it_comes(rig: Rig):
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_)
    first = rig.consumer(filter_, 1)
    producer = rig.producer(tea)
    producer.send(message("1"))
    rig.run()
    first.link.detach()
    rig.run()
    assert producer.outcomes == [(message("1"), MODIFIED_FAILED)]
    assert producer.link.credit == 0
    second = rig.consumer(filter_, 5)
    assert producer.link.credit == 5
    producer.send(message("2"))
    rig.run()
    assert second.messages == addressed(TEA, "2")


def test_without_consumers_for_the_path_wait_messages_are_released(make_rig: MakeRig):
    rig = make_rig(path_wait_s=2.0)
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_)
    consumer, producer = rig.consumer(filter_), rig.producer(tea)
    producer.send(message("1"))
    consumer.link.detach()
    rig.run()
    rig.advance(2.5)
    assert len(producer.outcomes) == 1
    assert producer.outcomes[0][1] in (RELEASED, MODIFIED_FAILED)


def test_the_loss_of_the_consumer_settles_what_it_had(rig: Rig):
    consumer, tea, oil = two_addresses(rig)
    tea.send(message("1"))
    oil.send(message("2"))
    rig.run()
    rig.cut(consumer.connection)
    assert [outcome for _, outcome in tea.outcomes + oil.outcomes] == [MODIFIED_FAILED] * 2


# Credit
def test_the_credit_of_the_consumer_is_promised_once_not_once_for_each_address(rig: Rig):
    filter_ = rig.filter()
    groups = [rig.matched(f"prices.{number}", filter_) for number in range(10)]
    rig.consumer(filter_, 20)
    producers = [rig.producer(group, 100) for group in groups]
    assert sum(producer.link.credit for producer in producers) <= 20 + len(producers)
    assert all(producer.link.credit >= 1 for producer in producers)


def test_a_busy_address_gets_the_credit_of_an_idle_one_soon(rig: Rig):
    filter_ = rig.filter()
    consumer = rig.consumer(filter_, 20)
    idle = rig.producer(rig.matched(TEA, filter_), 100)
    busy = rig.producer(rig.matched(OIL, filter_), 100)
    assert (idle.link.credit, busy.link.credit) == (20, 1)
    for number in range(4):
        busy.send(message(str(number)))
        rig.advance(0.06)
    assert idle.link.credit == 1
    assert busy.link.credit >= 8
    assert len(consumer.messages) == 4


def test_credit_that_the_consumer_grants_reaches_the_senders_of_all_addresses(rig: Rig):
    consumer, tea, oil = two_addresses(rig, credit=0)
    assert (tea.link.credit, oil.link.credit) == (1, 1)
    tea.send(message("1"))
    oil.send(message("2"))
    rig.run()
    assert consumer.messages == []
    consumer.link.grant(1)
    rig.run()
    assert consumer.messages == addressed(TEA, "1")
    consumer.link.grant(1)
    rig.run()
    assert consumer.messages == addressed(TEA, "1") + addressed(OIL, "2")
    consumer.link.grant(20)
    rig.run()
    assert tea.link.credit + oil.link.credit >= 8


def test_addresses_take_turns_at_a_consumer_with_little_credit(rig: Rig):
    filter_ = rig.filter()
    consumer = rig.consumer(filter_, 0)
    names = [f"prices.{number}" for number in range(5)]
    producers = [rig.producer(rig.matched(name, filter_)) for name in names]
    for producer in producers:
        producer.send(message("1"))
    rig.run()
    for _ in range(4):
        for name, producer in zip(names, producers, strict=True):
            consumer.link.grant(1)
            rig.run()
            assert consumer.messages.pop() == addressed(name, "1")[0]
            consumer.answer()
            rig.run()
            if producer.link.credit:
                producer.send(message("1"))
                rig.run()


def test_the_slowest_consumer_of_address_and_filter_bounds_the_producer(rig: Rig):
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_)
    rig.consumer(tea, 7)
    rig.consumer(filter_, 3)
    rig.consumer(filter_, 9)
    assert rig.producer(tea, 100).link.credit == 3


def test_a_drain_of_the_consumer_is_answered(rig: Rig):
    consumer, tea, _ = two_addresses(rig)
    tea.send(message("1"))
    rig.run()
    consumer.link.request_drain(0)
    rig.run()
    assert consumer.link.credit == 0
    assert not consumer.link.is_drain_pending


# Consumers that stand still
def test_a_consumer_without_credit_is_left_out_for_all_addresses_after_the_stall_time(rig: Rig):
    filter_ = rig.filter()
    tea, oil = rig.matched(TEA, filter_), rig.matched(OIL, filter_)
    stands = rig.consumer(filter_, 0)
    goes = rig.consumer(filter_, 10)
    producers = [rig.producer(tea), rig.producer(oil)]
    for producer in producers:
        producer.send(message("1"))
    rig.advance(STALL_S - 1)
    assert goes.messages == []
    rig.advance(2)
    assert sorted(goes.messages) == sorted(addressed(TEA, "1") + addressed(OIL, "1"))
    assert stands.messages == []
    stands.link.grant(5)
    rig.run()
    for producer in producers:
        producer.send(message("2"))
    rig.run()
    assert sorted(stands.messages) == sorted(addressed(TEA, "2") + addressed(OIL, "2"))


def test_the_address_that_waited_first_may_go_away_while_others_wait(rig: Rig):
    filter_ = rig.filter()
    tea, oil = rig.matched(TEA, filter_), rig.matched(OIL, filter_)
    rig.consumer(filter_, 0)
    goes = rig.consumer(filter_, 10)
    gone, stays = rig.producer(tea), rig.producer(oil)
    gone.send(message("1"))
    rig.run()
    stays.send(message("2"))
    rig.run()
    rig.cut(gone.connection)
    tea.leave_filters()
    rig.advance(STALL_S + 1)
    assert goes.messages == addressed(OIL, "2")


def test_a_slow_connection_of_one_address_holds_up_no_other_address(rig: Rig):
    filter_ = rig.filter()
    tea, oil = rig.matched(TEA, filter_), rig.matched(OIL, filter_)
    slow, all_ = rig.consumer(tea, 100), rig.consumer(filter_, 100)
    producers = [rig.producer(tea), rig.producer(oil)]
    slow.connection.is_stalled = True
    for number in range(4):
        producers[0].send(message(f"{number}" + "x" * 60_000))
        rig.run()
    before = len(all_.messages)
    assert before < 4
    producers[1].send(message("oil"))
    rig.run()
    assert all_.messages[before:] == addressed(OIL, "oil")
    slow.connection.is_stalled = False
    rig.run()
    assert len(all_.messages) == 5
    assert len(slow.messages) == 4


@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_consumer_that_reads_nothing_is_left_out_after_the_stall_time(rig: Rig, is_filtered: bool):
    slow_filter, filter_ = rig.filter(), rig.filter()
    tea = rig.matched(TEA, slow_filter, filter_)
    slow, all_ = rig.consumer(slow_filter if is_filtered else tea, 100), rig.consumer(filter_, 100)
    producer = rig.producer(tea)
    slow.connection.is_stalled = True
    for number in range(4):
        producer.send(message(f"{number}" + "x" * 60_000))
        rig.run()
    assert len(all_.messages) < 4
    rig.advance(2 * STALL_S + 1)
    assert len(all_.messages) == 4


def test_a_large_message_to_one_address_is_waited_for_by_another_and_goes_on(rig: Rig):
    consumer, tea, oil = two_addresses(rig)
    large = message("x" * 200_000)
    tea._count += 1
    delivery = tea.link.start(b"large")
    tea.open[delivery] = large
    tea.link.send(large[:150_000])
    rig.run()
    oil.send(message("2"))
    rig.run()
    assert consumer.messages == []
    tea.link.send(large[150_000:])
    tea.link.finish()
    rig.run()
    assert consumer.messages == [with_delivery_address(large, TEA.encode()), *addressed(OIL, "2")]


def test_a_large_message_that_comes_bit_by_bit_holds_up_consumers_of_another_address_for_the_stall_time_only(rig: Rig):
    filter_ = rig.filter()
    tea, oil = rig.matched(TEA, filter_), rig.matched(OIL, filter_)
    all_, exact = rig.consumer(filter_), rig.consumer(oil)
    slow, other = rig.producer(tea), rig.producer(oil)
    large = message("x" * 200_000)
    slow.begin(large[:150_000])
    rig.run()
    other.send(message("2"))
    rig.run()
    assert exact.messages == []
    for second in range(int(2 * STALL_S) + 1):
        slow.link.send(large[150_000 + 50 * second : 150_050 + 50 * second])
        rig.advance(1)
    assert exact.messages == [message("2")]
    slow.link.send(large[150_000 + 50 * (second + 1) :])
    slow.link.finish()
    rig.run()
    other.send(message("3"))
    rig.run()
    assert all_.messages == [with_delivery_address(large, TEA.encode()), *addressed(OIL, "3")]
    assert exact.messages == [message("2"), message("3")]


def test_a_large_message_that_is_aborted_lets_the_other_address_go_on(rig: Rig):
    consumer, tea, oil = two_addresses(rig)
    tea.begin(message("x" * 200_000)[:150_000])
    rig.run()
    oil.send(message("2"))
    rig.run()
    assert consumer.messages == []
    rig.cut(tea.connection)
    rig.advance(0.01)
    assert consumer.aborted == 1
    assert consumer.messages == addressed(OIL, "2")


def test_a_consumer_whose_largest_message_has_no_room_for_the_address_is_left_out(rig: Rig):
    filter_ = rig.filter()
    tea = rig.matched(TEA, filter_)
    sent = message("x" * 100)
    small = rig.consumer(filter_, max_message_bytes=len(sent) + 10)
    large = rig.consumer(filter_, max_message_bytes=len(sent) + 100)
    rig.producer(tea).send(sent)
    rig.run()
    assert small.messages == []
    assert large.messages == addressed(TEA, "x" * 100)

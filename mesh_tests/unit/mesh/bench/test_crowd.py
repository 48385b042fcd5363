"""`bench fan` and `bench busy`: many producers and consumers in one loop, and the figures made of their shares."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.bench.bench_connection import BenchConnection
from mesh.bench.crowd_loop import SendingTurns, SharedReceipts, SharingConsumer, TurnProducer, run_crowd
from mesh.bench.fan import FanBenchRequest, FanBenchRun, difference_percent, sentences
from mesh.bench.faults import PeerGone
from mesh_tests.bench.messages import RUN, payload
from mesh_tests.bench.pair import BODY_BYTES, SOON_S, STALL_S, transfer

RATE_PER_S = 2000.0


def turn_producer(index: int, step: int, total: int) -> TurnProducer:
    count = len(range(index, total, step))
    return TurnProducer(
        0, "s", 1000, index=index, step=step, run=RUN, count=count, body_bytes=BODY_BYTES, frame_bytes=65536
    )


def sharing_consumer(receipts: SharedReceipts, window: int = 100) -> SharingConsumer:
    return SharingConsumer(0, "r", 0, 0, receipts=receipts, run=RUN, body_bytes=BODY_BYTES, window=window)


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def make_ends() -> Iterator[Callable[[], Ends]]:
    with ExitStack() as stack:

        def make() -> Ends:
            one, other = socket.socketpair()
            stack.enter_context(one)
            stack.enter_context(other)
            one.setblocking(False)
            return one, other

        yield make


def carrier_on(ours: socket.socket, link: TurnProducer | SharingConsumer) -> BenchConnection:
    carrier = BenchConnection(ours.fileno(), 65536, 3600.0)
    carrier.add(link, 0)
    return carrier


# The loop
@pytest.mark.parametrize("pairs", [1, 3])
def test_producers_send_in_turn_at_the_rate_and_consumers_share_each_message_once(
    pairs: int, make_ends: Callable[[], Ends]
) -> None:
    total = 100
    receipts = SharedReceipts(total, True)
    producers = [turn_producer(index, pairs, total) for index in range(pairs)]
    consumers = [sharing_consumer(receipts, window=5) for _ in range(pairs)]
    carriers = []
    for producer, consumer in zip(producers, consumers, strict=True):
        ours, theirs = make_ends()
        carriers += [carrier_on(ours, producer), carrier_on(theirs, consumer)]
    turns = SendingTurns(producers, RATE_PER_S, total)
    began_at = time.monotonic()
    assert run_crowd(carriers, receipts, STALL_S, turns=turns)
    took_s = time.monotonic() - began_at
    assert took_s >= (total - 1) / RATE_PER_S
    assert (receipts.received, turns.released, len(receipts.took_us)) == (total, total, total)
    assert [each.received for each in consumers] == [each.count for each in producers]
    assert [each.settled for each in producers] == [each.count for each in producers]
    assert max(receipts.took_us) < took_s * 1e6
    assert sum(each.doubled + each.damaged + each.reordered for each in consumers) == 0


def test_a_message_that_two_consumers_get_is_doubled(make_ends: Callable[[], Ends]) -> None:
    receipts = SharedReceipts(2)
    consumers, theirs = [sharing_consumer(receipts) for _ in range(2)], []
    carriers = []
    for consumer in consumers:
        ours, their = make_ends()
        theirs.append(their)
        carriers.append(carrier_on(ours, consumer))
    for their in theirs:
        their.sendall(transfer(0, payload(1)))
    assert not run_crowd(carriers, receipts, SOON_S)
    assert (receipts.received, sum(each.received for each in consumers), sum(each.doubled for each in consumers)) == (
        1,
        1,
        1,
    )


def test_a_loop_that_waits_for_nobody_ends_when_nothing_moves_or_it_is_told_to(make_ends: Callable[[], Ends]) -> None:
    (ours, _), (told, telling) = make_ends(), make_ends()
    receipts = SharedReceipts(1)
    carriers = [carrier_on(ours, sharing_consumer(receipts))]
    assert not run_crowd(carriers, receipts, SOON_S)
    telling.sendall(b"sender is done")
    assert not run_crowd(carriers, receipts, 3600.0, told.fileno(), SOON_S)


def test_a_connection_that_is_lost_ends_the_loop_with_the_reason(make_ends: Callable[[], Ends]) -> None:
    ours, theirs = make_ends()
    receipts = SharedReceipts(1)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(PeerGone, match="the peer closed it without an error"):
        run_crowd([carrier_on(ours, sharing_consumer(receipts))], receipts, STALL_S)


# Figures
@given(st.lists(st.integers(1, 1000), min_size=1))
def test_shares_differ_by_the_largest_over_the_smallest(shares: list[int]) -> None:
    found = difference_percent(shares)
    assert found is not None
    assert found >= 0
    assert (1 + found / 100) * min(shares) == pytest.approx(max(shares))


def test_shares_without_a_message_have_no_ratio() -> None:
    assert difference_percent([3, 0]) is None


def test_rows_of_a_fan_name_consumers_and_connections() -> None:
    order = FanBenchRequest(
        consumers=1000, connections=(1000, 1), messages=1, body_bytes=100, window=1, repeat=1, stall_s=1.0
    )
    assert [order.name("r", count) for count in order.connections] == [
        "r, 1 to 1,000 consumers on 1,000 connections, 100 B",
        "r, 1 to 1,000 consumers on 1 connection, 100 B",
    ]


def test_lost_and_doubled_messages_of_a_fan_are_wrong() -> None:
    runs = [FanBenchRun({"lost": 3}, {"doubled": 1}), FanBenchRun({"lost": 0}, {"doubled": 1})]
    assert list(sentences("w", runs)) == ["w: 3 messages did not arrive", "w: 2 messages doubled"]

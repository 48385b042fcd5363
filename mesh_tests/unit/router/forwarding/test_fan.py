"""One delivery on its way to many takers: who gets it, who holds up whom, and what the producer is told."""

from __future__ import annotations

import pytest

from mesh_tests.outcomes import REFUSED, outcome_id, told
from mesh_tests.unit.router.forwarding.conftest import MakeRig
from mesh_tests.unit.router.forwarding.rig import Rig, one_to
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.link import RECEIVE_FIRST, SEND_SETTLED

LARGE = bytes(300_000)
BEST_FIRST = (REFUSED, ACCEPTED, MODIFIED_FAILED, RELEASED)


def test_everybody_gets_a_copy_and_the_outcome_comes_when_all_have_settled(rig: Rig):
    producer, consumers = one_to(rig, 3)
    producer.send(b"1")
    rig.run()
    assert [consumer.messages for consumer in consumers] == [[b"1"]] * 3
    for consumer in consumers:
        assert producer.outcomes == []
        consumer.answer()
        rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED)]


@pytest.mark.parametrize("worse", BEST_FIRST, ids=outcome_id)
@pytest.mark.parametrize("better", BEST_FIRST, ids=outcome_id)
@pytest.mark.parametrize("is_better_first", [True, False])
def test_of_two_outcomes_the_producer_hears_the_better(
    rig: Rig, better: Outcome, worse: Outcome, is_better_first: bool
):
    if BEST_FIRST.index(better) > BEST_FIRST.index(worse):
        better, worse = worse, better
    producer, (first, second) = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    first.answer(better if is_better_first else worse)
    rig.run()
    second.answer(worse if is_better_first else better)
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(better)]


def test_of_two_refusals_the_producer_hears_the_first(rig: Rig):
    producer, (first, second) = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    first.answer(REFUSED)
    rig.run()
    second.answer(rejected("com.example:other", "later"))
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(REFUSED)]


def test_a_message_of_any_size_comes_byte_for_byte_to_everybody(rig: Rig):
    producer, consumers = one_to(rig, 2)
    messages = [b"", b"x", bytes(range(251)) * 261, bytes(range(251)) * 4000]
    for message in messages:
        producer.send(message)
        rig.run()
        for consumer in consumers:
            consumer.answer()
        rig.run()
    assert [consumer.messages for consumer in consumers] == [messages] * 2
    assert len(producer.outcomes) == len(messages)


def test_what_was_sent_settled_is_settled_everywhere(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.send(b"1", settled=True)
    rig.run()
    assert [consumer.messages for consumer in consumers] == [[b"1"]] * 2
    assert [consumer.held for consumer in consumers] == [[], []]


def test_a_taker_that_wants_all_settled_is_an_acceptance(rig: Rig):
    group = rig.multicast()
    group_of_one = rig.consumer(group, modes=(SEND_SETTLED, RECEIVE_FIRST))
    other = rig.consumer(group)
    producer = rig.producer(group)
    producer.send(b"1")
    rig.run()
    assert group_of_one.held == []
    other.answer(RELEASED)
    rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED)]


# Pace
def test_the_slowest_sets_the_pace(rig: Rig):
    producer, (slow, quick) = one_to(rig, 2)
    slow.connection.is_stalled = True
    producer.send(bytes(2_000_000))
    rig.run()
    assert quick.messages == []
    assert len(quick.partial) <= 4 * 65536
    slow.connection.is_stalled = False
    rig.run()
    assert [len(consumer.messages[0]) for consumer in (slow, quick)] == [2_000_000] * 2


@pytest.mark.parametrize("size", [10_000, 100_000])
@pytest.mark.parametrize("is_cut", [True, False])
def test_settled_messages_go_on_to_the_others_as_soon_as_the_one_that_blocked_them_leaves(
    rig: Rig, size: int, is_cut: bool
):
    """Its connection is cut, or it detaches and still reads nothing."""
    producer, (slow, quick) = one_to(rig, 2, credit=100)
    slow.connection.is_stalled = True
    messages = [bytes([number]) * size for number in range(10)]
    producer.send(*messages, settled=True)
    rig.advance(0.5)
    assert quick.messages != messages
    rig.cut(slow.connection) if is_cut else slow.link.detach()
    rig.run()
    assert quick.messages == messages


def test_one_that_takes_no_byte_for_the_stall_timeout_loses_its_copy(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (slow, quick) = one_to(rig, 2)
    slow.connection.is_stalled = True
    producer.send(bytes(2_000_000))
    rig.advance(9.0)
    assert quick.messages == []
    # Once more, since at first some bytes went into its connection.
    rig.advance(12.0)
    assert [len(message) for message in quick.messages] == [2_000_000]
    assert slow.taker.copies_missed == 1
    quick.answer(RELEASED)
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(MODIFIED_FAILED)]
    slow.connection.is_stalled = False
    rig.run()
    assert (slow.messages, slow.partial) == ([], b""), "nothing of it had left"


def test_one_that_takes_copies_all_the_while_loses_none_though_each_is_blocked_for_a_moment(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (busy, other) = one_to(rig, 2, credit=100)
    for _ in range(7):
        busy.connection.is_stalled = True
        producer.send(*[bytes(60_000)] * 3)  # of the last no byte can go out yet
        rig.advance(3.0)
        busy.connection.is_stalled = False
        rig.run()
        for each in (busy, other):
            each.answer()
    assert [len(each.messages) for each in (busy, other)] == [21, 21]
    assert busy.taker.copies_missed == 0


def test_one_that_grants_and_takes_no_byte_is_not_waited_for_because_of_that(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (slow, quick) = one_to(rig, 2)
    slow.connection.is_stalled = True
    producer.send(bytes(2_000_000))
    for _ in range(8):
        rig.advance(3.0)
        slow.link.grant(1)
    assert [len(message) for message in quick.messages] == [2_000_000]


def test_settled_messages_wait_but_shortly_for_one_that_takes_no_byte(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (full, other) = one_to(rig, 2)
    full.connection.router.is_output_blocked = True
    for _ in range(5):
        producer.send(bytes(100_000), settled=True)
    rig.advance(0.9)
    assert other.messages == []
    rig.advance(0.2)
    assert len(other.messages) == 5
    assert full.taker.copies_missed == 5
    full.connection.router.is_output_blocked = False
    producer.send(b"after", settled=True)
    rig.run()
    assert full.messages == [b"after"]
    assert other.messages[-1] == b"after"


def test_one_that_takes_its_credit_back_before_a_byte_was_sent_loses_its_copy(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (full, other) = one_to(rig, 2)
    full.connection.router.is_output_blocked = True
    producer.send(b"1")
    rig.run()
    assert other.messages == []
    full.link.set_credit(0)
    rig.run()
    full.connection.router.is_output_blocked = False
    rig.advance(21.0)
    assert other.messages == [b"1"]
    other.answer()
    rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED)]
    assert full.messages == []


def test_one_without_credit_is_waited_for_and_then_left_out(make_rig: MakeRig):
    rig = make_rig(stall_timeout_s=10.0)
    producer, (without, other) = one_to(rig, 2, credit=1)
    producer.send(b"1")
    rig.run()
    for consumer in (without, other):
        consumer.answer()
    other.link.grant(10)
    rig.run()
    producer.send(b"2")
    rig.advance(9.0)
    assert other.messages == [b"1"]
    rig.advance(2.0)
    assert other.messages == [b"1", b"2"]
    assert without.taker.copies_missed == 1
    without.link.grant(10)
    rig.run()
    producer.send(b"3")
    rig.run()
    assert without.messages == [b"1", b"3"]


def test_a_settled_message_hardly_waits_for_credit(rig: Rig):
    producer, (without, other) = one_to(rig, 2, credit=1)
    producer.send(b"1", settled=True)
    rig.run()
    other.link.grant(10)
    rig.run()
    producer.send(b"2", settled=True)
    rig.advance(0.2)
    assert other.messages == [b"1", b"2"]
    assert without.taker.copies_missed == 1


# Who is lost
def test_one_who_is_lost_is_a_copy_in_doubt(rig: Rig):
    producer, (lost, other) = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    rig.cut(lost.connection)
    other.answer(RELEASED)
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(MODIFIED_FAILED)]


def test_one_who_is_lost_in_the_middle_holds_nobody_up(rig: Rig):
    producer, (lost, other) = one_to(rig, 2)
    producer.begin(LARGE)
    rig.run()
    rig.cut(lost.connection)
    producer.link.finish()
    rig.run()
    assert other.messages == [LARGE]
    other.answer()
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(ACCEPTED)]


def test_one_who_stood_still_and_is_lost_holds_nobody_up(rig: Rig):
    producer, (lost, other) = one_to(rig, 2)
    lost.connection.is_stalled = True
    producer.send(bytes(2_000_000))
    rig.run()
    assert other.messages == []
    rig.cut(lost.connection)
    assert len(other.messages) == 1


def test_when_all_are_lost_the_producer_is_told_so(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    for consumer in consumers:
        rig.cut(consumer.connection)
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(MODIFIED_FAILED)]


def test_when_all_are_lost_in_the_middle_the_rest_is_read(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.begin(LARGE)
    rig.run()
    for consumer in consumers:
        rig.cut(consumer.connection)
    producer.link.send(LARGE)
    producer.link.finish()
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(MODIFIED_FAILED)]


def test_when_the_producer_is_lost_what_is_complete_goes_on(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    rig.cut(producer.connection)
    for consumer in consumers:
        consumer.answer()
    rig.run()
    assert [consumer.taker.unsettled_count for consumer in consumers] == [0, 0]


def test_when_the_producer_is_lost_what_is_not_complete_is_aborted(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.begin(LARGE)
    rig.run()
    rig.cut(producer.connection)
    assert [(consumer.messages, consumer.aborted) for consumer in consumers] == [([], 1)] * 2


def test_an_abort_passes(rig: Rig):
    producer, consumers = one_to(rig, 2)
    delivery = producer.begin(LARGE)
    rig.run()
    producer.link.abort(delivery)
    producer.send(b"next")
    rig.run()
    assert [(consumer.messages, consumer.aborted) for consumer in consumers] == [([b"next"], 1)] * 2


def test_a_producer_that_settles_first_wants_no_outcome(rig: Rig):
    producer, consumers = one_to(rig, 2)
    producer.send(b"1")
    rig.run()
    (delivery,) = producer.open
    producer.open.clear()
    deliveries.settle(delivery)
    rig.run()
    assert producer.inlet.unsettled_count == 0
    for consumer in consumers:
        consumer.answer()
    rig.run()
    assert [consumer.taker.unsettled_count for consumer in consumers] == [0, 0]


def test_what_comes_over_a_circuit_goes_to_consumers_here_and_down_its_own_tree(rig: Rig):
    group = rig.multicast()
    here = rig.consumer(group)
    circuit, producer = rig.producer(group, is_circuit=True), rig.producer(group)
    branch_of_circuit = rig.consumer(group, cost=1, upstream=circuit.inlet)
    branch = rig.consumer(group, cost=1)
    circuit.send(b"came")
    rig.run()
    producer.send(b"new")
    rig.run()
    assert here.messages == [b"came", b"new"]
    assert branch_of_circuit.messages == [b"came"]
    assert branch.messages == [b"new"]


# Branches that come and go
def test_a_tree_that_lacks_branches_is_waited_for_each_time_but_not_for_ever(rig: Rig):
    group = rig.multicast()
    consumer, producer = rig.consumer(group), rig.producer(group)
    rig.advance(1)
    group.begin_change()
    group.end_change(is_complete=False)
    group.end_change(is_complete=True)
    rig.advance(10 * rig.settings.path_wait_s)
    group.begin_change()
    group.end_change(is_complete=False)
    producer.send(b"1")
    rig.run()
    assert consumer.messages == []
    rig.advance(rig.settings.path_wait_s)
    group.end_change(is_complete=False)
    rig.run()
    assert consumer.messages == [b"1"]

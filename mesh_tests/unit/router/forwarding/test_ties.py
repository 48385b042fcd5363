"""Ties by themselves, and what becomes of a delivery whose tie is stale or another's."""

from __future__ import annotations

import ctypes

import pytest

from mesh_tests.compiled import exported
from mesh_tests.unit.router.forwarding.engine import set_tie, tie_of, unsettled
from mesh_tests.unit.router.forwarding.rig import Rig
from router.forwarding import ties
from wire.errors import LocalStateError

new_tie = exported(ties, "new_tie", ctypes.c_ulonglong, ctypes.c_void_p)
carrier_of = exported(ties, "carrier_of", ctypes.c_void_p, ctypes.c_ulonglong)
end_tie = exported(ties, "end_tie", None, ctypes.c_ulonglong)


def test_a_tie_leads_to_its_carrier_until_it_ends():
    tie = new_tie(0x1000)
    assert carrier_of(tie) == 0x1000
    end_tie(tie)
    assert carrier_of(tie) is None


def test_a_slot_that_is_used_again_has_another_tie():
    old = new_tie(0x1000)
    end_tie(old)
    new = new_tie(0x2000)
    assert new & 0xFFFFFFFF == old & 0xFFFFFFFF, "the same slot"
    assert new != old
    assert carrier_of(old) is None
    assert carrier_of(new) == 0x2000
    end_tie(new)


def test_a_tie_that_ended_ends_nobody_elses():
    before = ties.count()
    old = new_tie(0x1000)
    end_tie(old)
    new = new_tie(0x2000)
    end_tie(old)
    assert carrier_of(new) == 0x2000
    assert ties.count() == before + 1
    end_tie(new)
    assert ties.count() == before


def test_there_are_as_many_ties_as_are_asked_for():
    before = ties.count()
    # More than twice what there is room for at first, so that the room grows twice.
    made = {new_tie(number): number for number in range(1, 5000)}
    assert len(made) == 4999
    assert ties.count() == before + 4999
    assert all(carrier_of(tie) == number for tie, number in made.items())
    for tie in made:
        end_tie(tie)
    assert ties.count() == before
    assert not any(carrier_of(tie) for tie in made)


@pytest.mark.parametrize("tie", [1 << 32, (1 << 64) - 1, 7, 0xFFFFFFFF])
def test_what_was_never_a_tie_leads_nowhere(tie: int):
    assert carrier_of(tie) is None
    before = ties.count()
    end_tie(tie)
    assert ties.count() == before


def two_under_way() -> tuple[Rig, object, object]:
    rig = Rig()
    group = rig.anycast()
    consumer = rig.consumer(group)
    producer = rig.producer(group)
    producer.send(b"1", b"2")
    rig.run()
    return rig, producer, consumer


def test_every_delivery_under_way_has_one_tie_at_both_its_ends():
    before = ties.count()
    _, producer, consumer = two_under_way()
    incoming, outgoing = unsettled(producer.inlet.link), unsettled(consumer.taker.link)
    assert ties.count() == before + 2
    assert [tie_of(each) for each in incoming] == [tie_of(each) for each in outgoing]
    assert 0 not in map(tie_of, incoming)


def test_the_disposition_of_a_delivery_with_anothers_tie_is_found_out():
    rig, producer, consumer = two_under_way()
    first, second = unsettled(consumer.taker.link)
    set_tie(first, tie_of(second))
    consumer.answer(count=1)
    with pytest.raises(LocalStateError, match="belongs to another delivery"):
        rig.run()
    assert producer.outcomes == [], "neither was told of"


def test_an_incoming_delivery_that_has_become_another_is_not_settled():
    rig, producer, consumer = two_under_way()
    first, second = unsettled(producer.inlet.link)
    set_tie(first, tie_of(second))
    consumer.answer(count=1)
    with pytest.raises(LocalStateError, match="now belongs to another delivery"):
        rig.run()
    assert producer.outcomes == []


def test_a_stale_tie_is_not_anothers():
    rig, producer, consumer = two_under_way()
    first = unsettled(consumer.taker.link)[0]
    stale = new_tie(0x1000)
    end_tie(stale)
    set_tie(first, stale)
    consumer.answer(count=1)
    rig.run()
    assert producer.outcomes == []


def test_no_tie_is_left_when_everything_is_settled():
    before = ties.count()
    rig, producer, consumer = two_under_way()
    consumer.answer()
    rig.run()
    assert [message for message, _ in producer.outcomes] == [b"1", b"2"]
    assert ties.count() == before


def test_no_tie_is_left_when_the_connections_are_lost():
    before = ties.count()
    rig, _, _ = two_under_way()
    rig.close()
    assert ties.count() == before

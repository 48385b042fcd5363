"""What is packed is what it was before, and nothing more than that is kept of it."""

import gc

import pytest

from broker.queueing.action import Departure, SettlementVerdict
from broker.queueing.message import QueueEntry
from broker.queueing.queue import Queue
from mesh_tests.unit.broker.queues import NOW, delivered, given, new_message, stored

MANY = 10_000


def test_a_pack_that_two_browsers_look_into_stays_open_until_both_have_passed_it() -> None:
    queue = Queue(front_entries=1, pack_entries=2)
    for message_id in range(1, 10):
        message = new_message(message_id, is_stored=True)
        message.references = 1
        queue.enqueue(message, NOW)
    for browser_id, credit in ((1, 2), (2, 2), (1, 7)):
        if credit == 2:
            queue.attach_browser(browser_id)
        queue.set_credit(browser_id, credit, NOW)
    queue.attach(3)
    queue.on_mark(4, 9, NOW)
    assert [message_id for _, message_id in given(queue.set_credit(3, 4, NOW))] == [1, 2, 3, 4]
    assert given(queue.set_credit(2, 9, NOW)) == [(2, message_id) for message_id in range(5, 10)]


def test_what_a_browser_was_shown_and_then_a_consumer_given_is_one_message() -> None:
    queue = Queue(front_entries=1, pack_entries=2)
    for message_id in range(1, 15):
        queue.enqueue(stored(message_id), NOW)
    queue.attach_browser(9)
    queue.attach(1)
    queue.on_mark(4, 14, NOW)
    shown = delivered(queue.set_credit(9, 8, NOW))
    for entry in shown:
        entry.message.references += 1
    taken = delivered(queue.set_credit(1, 8, NOW))
    assert [entry.message for entry in taken] == [entry.message for entry in shown]


def _alive() -> int:
    gc.collect()
    return sum(type(each) is QueueEntry for each in gc.get_objects())


def test_packs_that_were_taken_leave_nothing_behind() -> None:
    queue = Queue()
    queue.attach(1)
    queue.on_mark(4, MANY, NOW)
    before = _alive()
    for message_id in range(MANY):
        queue.enqueue(stored(message_id, NOW + 1000 if message_id % 256 == 7 else None), NOW)
    for _ in range(MANY // 100 - 1):
        for entry in delivered(queue.set_credit(1, 100, NOW)):
            queue.settle(1, entry, SettlementVerdict.ACCEPTED, NOW)
    del entry
    assert _alive() - before < 1000


@pytest.mark.parametrize("is_held_up", [False, True])
def test_what_expires_without_a_consumer_is_forgotten(is_held_up: bool) -> None:
    queue, before = Queue(), _alive()
    if is_held_up:
        queue.enqueue(stored(0), NOW)
    for message_id in range(1, MANY):
        queue.enqueue(stored(message_id, NOW + 1), NOW)
    while queue.on_time(NOW + 3):
        pass
    assert queue.snapshot().available_count == is_held_up
    assert _alive() - before < 2500


def test_what_was_taken_before_an_idle_browser_came_to_it_is_forgotten() -> None:
    queue = Queue()
    queue.attach_browser(9)
    queue.attach(1)
    queue.on_mark(4, MANY, NOW)
    before = _alive()
    for message_id in range(1, MANY):
        queue.enqueue(stored(message_id), NOW)
        for entry in delivered(queue.set_credit(1, 1, NOW)):
            queue.settle(1, entry, SettlementVerdict.ACCEPTED, NOW)
    assert _alive() - before < 2500


def test_a_purge_of_what_was_there_opens_nothing_that_came_later() -> None:
    queue = Queue()
    for message_id in range(1, MANY):
        queue.enqueue(stored(message_id), NOW)
    end, before = queue.snapshot().enqueued_total, _alive()
    for message_id in range(MANY, 3 * MANY):
        queue.enqueue(stored(message_id), NOW)
    assert len(queue.take_available(10 * MANY, end, Departure.PURGED, NOW)) == MANY - 1
    assert queue.snapshot().available_count == 2 * MANY
    assert _alive() < before + 1000

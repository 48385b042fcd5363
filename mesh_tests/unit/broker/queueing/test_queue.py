from broker.queueing.action import Archive, Departure, Recount, SettlementVerdict, WantMark
from broker.queueing.queue import Queue
from broker.store.cause import Cause, Reason
from mesh_tests.unit.broker.queues import NOW, delivered, given, new_message


def _filled(count: int) -> Queue:
    queue = Queue()
    for message_id in range(1, count + 1):
        assert queue.enqueue(new_message(message_id), NOW) == []
    return queue


def _queue_with(*consumer_ids: int, count: int) -> Queue:
    queue = _filled(count)
    for consumer_id in consumer_ids:
        queue.attach(consumer_id)
    return queue


def test_consumers_take_turns() -> None:
    queue = Queue()
    for consumer_id in (1, 2):
        queue.attach(consumer_id)
        queue.set_credit(consumer_id, 10, NOW)
    turns = [given(queue.enqueue(new_message(message_id), NOW)) for message_id in range(4)]
    assert turns == [[(1, 0)], [(2, 1)], [(1, 2)], [(2, 3)]]


def test_nobody_is_given_more_than_its_credit() -> None:
    queue = _queue_with(1, count=5)
    assert given(queue.set_credit(1, 2, NOW)) == [(1, 1), (1, 2)]
    assert queue.set_credit(1, 0, NOW) == []


def test_a_released_message_comes_back_to_its_place_uncounted() -> None:
    queue = _queue_with(1, count=3)
    first, second = delivered(queue.set_credit(1, 2, NOW))
    assert queue.settle(1, second, SettlementVerdict.RELEASED, NOW) == []
    assert queue.settle(1, first, SettlementVerdict.RELEASED, NOW) == []
    assert given(queue.set_credit(1, 3, NOW)) == [(1, 1), (1, 2), (1, 3)]
    assert first.delivery_count == 0


def test_a_failed_message_is_counted_and_the_count_is_written() -> None:
    queue = _queue_with(1, count=1)
    (entry,) = delivered(queue.set_credit(1, 1, NOW))
    assert queue.settle(1, entry, SettlementVerdict.FAILED, NOW) == [Recount(entry)]
    assert entry.delivery_count == 1


def test_a_message_undeliverable_here_goes_to_another_consumer_only() -> None:
    queue = _queue_with(1, 2, count=2)
    (entry,) = delivered(queue.set_credit(1, 1, NOW))
    queue.settle(1, entry, SettlementVerdict.FAILED, NOW, shun=True)
    assert given(queue.set_credit(1, 5, NOW)) == [(1, 2)]
    assert queue.is_dry_for(1, NOW)
    assert not queue.is_dry_for(2, NOW)
    assert given(queue.set_credit(2, 5, NOW)) == [(2, 1)]


def test_a_vanished_consumer_gives_back_written_messages_counted_and_unwritten_ones_not() -> None:
    queue = _queue_with(1, count=2)
    written, unwritten = delivered(queue.set_credit(1, 2, NOW))
    assert queue.detach(1, [unwritten], NOW) == [Recount(written)]
    assert (written.delivery_count, unwritten.delivery_count) == (1, 0)


def test_a_message_past_its_deadline_is_archived_and_not_given() -> None:
    queue = Queue()
    queue.enqueue(new_message(1, expires_at_s=NOW + 1), NOW)
    queue.enqueue(new_message(2), NOW)
    assert queue.next_deadline() == NOW + 1
    (archived,) = queue.on_time(NOW + 1)
    assert isinstance(archived, Archive)
    assert archived.departure is Departure.EXPIRED
    queue.attach(1)
    assert given(queue.set_credit(1, 9, NOW + 1)) == [(1, 2)]


def test_a_message_that_expires_in_a_consumers_hands_is_archived_when_it_comes_back() -> None:
    queue = Queue()
    queue.attach(1)
    queue.set_credit(1, 1, NOW)
    (entry,) = delivered(queue.enqueue(new_message(1, expires_at_s=NOW + 1), NOW))
    assert queue.on_time(NOW + 2) == []
    assert queue.settle(1, entry, SettlementVerdict.RELEASED, NOW + 2) == [Archive(entry, Departure.EXPIRED)]


def test_a_browser_sees_everything_and_takes_nothing() -> None:
    queue = _filled(2)
    queue.attach_browser(7)
    assert given(queue.set_credit(7, 9, NOW)) == [(7, 1), (7, 2)]
    assert queue.is_dry_for(7, NOW)
    queue.attach(1)
    assert given(queue.set_credit(1, 9, NOW)) == [(1, 1), (1, 2)]


def test_a_stored_message_is_given_only_under_the_seen_mark() -> None:
    queue = Queue()
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (want,) = queue.enqueue(new_message(5, is_stored=True), NOW)
    assert isinstance(want, WantMark)
    assert want.message_id >= 5
    assert queue.enqueue(new_message(6, is_stored=True), NOW) == []
    assert given(queue.on_mark(want.priority, want.message_id, NOW)) == [(1, 5), (1, 6)]


def test_dropping_a_queue_archives_also_what_consumers_hold() -> None:
    queue = _queue_with(1, count=2)
    queue.set_credit(1, 1, NOW)
    assert [len(queue.drop_some(1)) for _ in range(2)] == [2, 0]
    assert queue.is_empty
    assert queue.detach(1, [], NOW) == []


def test_the_most_urgent_go_first_and_of_those_in_order() -> None:
    queue = Queue()
    for message_id, priority in enumerate([4, 0, 9, 4, 9, 5], 1):
        queue.enqueue(new_message(message_id, priority=priority), NOW)
    queue.attach(1)
    assert [number for _, number in given(queue.set_credit(1, 9, NOW))] == [3, 5, 6, 1, 4, 2]


def test_what_comes_back_comes_back_to_its_place_among_the_equally_urgent() -> None:
    queue = Queue()
    for message_id, priority in enumerate([9, 4, 4], 1):
        queue.enqueue(new_message(message_id, priority=priority), NOW)
    queue.attach(1)
    urgent, first = delivered(queue.set_credit(1, 2, NOW))
    queue.settle(1, first, SettlementVerdict.RELEASED, NOW)
    queue.settle(1, urgent, SettlementVerdict.RELEASED, NOW)
    assert [number for _, number in given(queue.set_credit(1, 9, NOW))] == [1, 2, 3]


def test_a_message_that_consumers_fail_with_too_often_is_given_up() -> None:
    queue = Queue(max_delivery_attempts=2)
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (first,) = delivered(queue.enqueue(new_message(1), NOW))
    again = queue.settle(1, first, SettlementVerdict.FAILED, NOW)
    assert given(again) == [(1, 1)]
    assert queue.settle(1, first, SettlementVerdict.FAILED, NOW) == [Archive(first, Departure.GIVEN_UP)]


def test_what_was_released_was_no_attempt() -> None:
    queue = Queue(max_delivery_attempts=1)
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (first,) = delivered(queue.enqueue(new_message(1), NOW))
    assert given(queue.settle(1, first, SettlementVerdict.RELEASED, NOW)) == [(1, 1)]


def test_a_message_with_a_cause_never_expires() -> None:
    queue = Queue()
    queue.enqueue(new_message(1, expires_at_s=NOW + 1), NOW, 0, Cause(Reason.REJECTED, "orders", 0, 1))
    assert queue.next_deadline() is None
    queue.attach(1)
    assert given(queue.set_credit(1, 1, NOW + 9)) == [(1, 1)]


def test_a_queue_makes_room_at_the_expense_of_the_oldest_whatever_its_priority() -> None:
    queue = Queue()
    for message_id, priority in enumerate([4, 9, 0], 1):
        queue.enqueue(new_message(message_id, priority=priority), NOW)
    queue.attach(1)
    queue.set_credit(1, 1, NOW)
    gone = [queue.shed() for _ in range(3)]
    assert [[action.entry.message_id for action in actions] for actions in gone] == [[1], [3], []]

import gc

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.action import Action, Archive, Deliver, Departure, Recount, Verdict, WantMark
from broker.cause import Cause, Reason
from broker.message import Entry, Message, State
from broker.queue import Queue

NOW = 100.0
MANY = 10_000
PRIORITIES = st.sampled_from((4, 4, 4, 0, 9))
PATIENCE_S = 1.01
"""What is due in a pack may stay so long, and a millisecond."""


def _message(
    message_id: int, *, is_stored: bool = False, expires_at_s: float | None = None, priority: int = 4
) -> Message:
    return Message(message_id, 10, is_stored, expires_at_s=expires_at_s, priority=priority)


def _filled(count: int) -> Queue:
    queue = Queue()
    for message_id in range(1, count + 1):
        assert queue.enqueue(_message(message_id), NOW) == []
    return queue


def _given(actions: list[Action]) -> list[tuple[int, int]]:
    return [(action.consumer_id, action.entry.message_id) for action in actions if isinstance(action, Deliver)]


def _entries(actions: list[Action]) -> list[Entry]:
    return [action.entry for action in actions if isinstance(action, Deliver)]


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
    turns = [_given(queue.enqueue(_message(message_id), NOW)) for message_id in range(4)]
    assert turns == [[(1, 0)], [(2, 1)], [(1, 2)], [(2, 3)]]


def test_nobody_is_given_more_than_its_credit() -> None:
    queue = _queue_with(1, count=5)
    assert _given(queue.set_credit(1, 2, NOW)) == [(1, 1), (1, 2)]
    assert queue.set_credit(1, 0, NOW) == []


def test_a_released_message_comes_back_to_its_place_uncounted() -> None:
    queue = _queue_with(1, count=3)
    first, second = _entries(queue.set_credit(1, 2, NOW))
    assert queue.settle(1, second, Verdict.RELEASED, NOW) == []
    assert queue.settle(1, first, Verdict.RELEASED, NOW) == []
    assert _given(queue.set_credit(1, 3, NOW)) == [(1, 1), (1, 2), (1, 3)]
    assert first.delivery_count == 0


def test_a_failed_message_is_counted_and_the_count_is_written() -> None:
    queue = _queue_with(1, count=1)
    (entry,) = _entries(queue.set_credit(1, 1, NOW))
    assert queue.settle(1, entry, Verdict.FAILED, NOW) == [Recount(entry)]
    assert entry.delivery_count == 1


def test_a_message_undeliverable_here_goes_to_another_consumer_only() -> None:
    queue = _queue_with(1, 2, count=2)
    (entry,) = _entries(queue.set_credit(1, 1, NOW))
    queue.settle(1, entry, Verdict.FAILED, NOW, shun=True)
    assert _given(queue.set_credit(1, 5, NOW)) == [(1, 2)]
    assert queue.is_dry_for(1, NOW)
    assert not queue.is_dry_for(2, NOW)
    assert _given(queue.set_credit(2, 5, NOW)) == [(2, 1)]


def test_a_vanished_consumer_gives_back_written_messages_counted_and_unwritten_ones_not() -> None:
    queue = _queue_with(1, count=2)
    written, unwritten = _entries(queue.set_credit(1, 2, NOW))
    assert queue.detach(1, [unwritten], NOW) == [Recount(written)]
    assert (written.delivery_count, unwritten.delivery_count) == (1, 0)


def test_a_message_past_its_deadline_is_archived_and_not_given() -> None:
    queue = Queue()
    queue.enqueue(_message(1, expires_at_s=NOW + 1), NOW)
    queue.enqueue(_message(2), NOW)
    assert queue.next_deadline() == NOW + 1
    (archived,) = queue.on_time(NOW + 1)
    assert isinstance(archived, Archive)
    assert archived.departure is Departure.EXPIRED
    queue.attach(1)
    assert _given(queue.set_credit(1, 9, NOW + 1)) == [(1, 2)]


def test_a_message_that_expires_in_a_consumers_hands_is_archived_when_it_comes_back() -> None:
    queue = Queue()
    queue.attach(1)
    queue.set_credit(1, 1, NOW)
    (entry,) = _entries(queue.enqueue(_message(1, expires_at_s=NOW + 1), NOW))
    assert queue.on_time(NOW + 2) == []
    assert queue.settle(1, entry, Verdict.RELEASED, NOW + 2) == [Archive(entry, Departure.EXPIRED)]


def test_a_browser_sees_everything_and_takes_nothing() -> None:
    queue = _filled(2)
    queue.attach_browser(7)
    assert _given(queue.set_credit(7, 9, NOW)) == [(7, 1), (7, 2)]
    assert queue.is_dry_for(7, NOW)
    queue.attach(1)
    assert _given(queue.set_credit(1, 9, NOW)) == [(1, 1), (1, 2)]


def test_a_stored_message_is_given_only_under_the_seen_mark() -> None:
    queue = Queue()
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (want,) = queue.enqueue(_message(5, is_stored=True), NOW)
    assert isinstance(want, WantMark)
    assert want.message_id >= 5
    assert queue.enqueue(_message(6, is_stored=True), NOW) == []
    assert _given(queue.on_mark(want.priority, want.message_id, NOW)) == [(1, 5), (1, 6)]


def test_dropping_a_queue_archives_also_what_consumers_hold() -> None:
    queue = _queue_with(1, count=2)
    queue.set_credit(1, 1, NOW)
    assert [len(queue.drop_some(1)) for _ in range(2)] == [2, 0]
    assert queue.is_empty
    assert queue.detach(1, [], NOW) == []


def test_the_most_urgent_go_first_and_of_those_in_order() -> None:
    queue = Queue()
    for message_id, priority in enumerate([4, 0, 9, 4, 9, 5], 1):
        queue.enqueue(_message(message_id, priority=priority), NOW)
    queue.attach(1)
    assert [number for _, number in _given(queue.set_credit(1, 9, NOW))] == [3, 5, 6, 1, 4, 2]


def test_what_comes_back_comes_back_to_its_place_among_the_equally_urgent() -> None:
    queue = Queue()
    for message_id, priority in enumerate([9, 4, 4], 1):
        queue.enqueue(_message(message_id, priority=priority), NOW)
    queue.attach(1)
    urgent, first = _entries(queue.set_credit(1, 2, NOW))
    queue.settle(1, first, Verdict.RELEASED, NOW)
    queue.settle(1, urgent, Verdict.RELEASED, NOW)
    assert [number for _, number in _given(queue.set_credit(1, 9, NOW))] == [1, 2, 3]


def test_a_message_that_consumers_fail_with_too_often_is_given_up() -> None:
    queue = Queue(max_delivery_attempts=2)
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (first,) = _entries(queue.enqueue(_message(1), NOW))
    again = queue.settle(1, first, Verdict.FAILED, NOW)
    assert _given(again) == [(1, 1)]
    assert queue.settle(1, first, Verdict.FAILED, NOW) == [Archive(first, Departure.GIVEN_UP)]


def test_what_was_released_was_no_attempt() -> None:
    queue = Queue(max_delivery_attempts=1)
    queue.attach(1)
    queue.set_credit(1, 9, NOW)
    (first,) = _entries(queue.enqueue(_message(1), NOW))
    assert _given(queue.settle(1, first, Verdict.RELEASED, NOW)) == [(1, 1)]


def test_a_message_with_a_cause_never_expires() -> None:
    queue = Queue()
    queue.enqueue(_message(1, expires_at_s=NOW + 1), NOW, 0, Cause(Reason.REJECTED, "orders", 0, 1))
    assert queue.next_deadline() is None
    queue.attach(1)
    assert _given(queue.set_credit(1, 1, NOW + 9)) == [(1, 1)]


def test_a_queue_makes_room_at_the_expense_of_the_oldest_whatever_its_priority() -> None:
    queue = Queue()
    for message_id, priority in enumerate([4, 9, 0], 1):
        queue.enqueue(_message(message_id, priority=priority), NOW)
    queue.attach(1)
    queue.set_credit(1, 1, NOW)
    gone = [queue.shed() for _ in range(3)]
    assert [[action.entry.message_id for action in actions] for actions in gone] == [[1], [3], []]


def test_a_pack_that_two_browsers_look_into_stays_open_until_both_have_passed_it() -> None:
    queue = Queue(front_entries=1, pack_entries=2)
    for message_id in range(1, 10):
        message = _message(message_id, is_stored=True)
        message.references = 1
        queue.enqueue(message, NOW)
    for browser_id, credit in ((1, 2), (2, 2), (1, 7)):
        if credit == 2:
            queue.attach_browser(browser_id)
        queue.set_credit(browser_id, credit, NOW)
    queue.attach(3)
    queue.on_mark(4, 9, NOW)
    assert [message_id for _, message_id in _given(queue.set_credit(3, 4, NOW))] == [1, 2, 3, 4]
    assert _given(queue.set_credit(2, 9, NOW)) == [(2, message_id) for message_id in range(5, 10)]


def _stored(message_id: int, expires_at_s: float | None = None) -> Message:
    message = _message(message_id, is_stored=True, expires_at_s=expires_at_s)
    message.references = 1
    return message


def test_what_a_browser_was_shown_and_then_a_consumer_given_is_one_message() -> None:
    queue = Queue(front_entries=1, pack_entries=2)
    for message_id in range(1, 15):
        queue.enqueue(_stored(message_id), NOW)
    queue.attach_browser(9)
    queue.attach(1)
    queue.on_mark(4, 14, NOW)
    shown = _entries(queue.set_credit(9, 8, NOW))
    for entry in shown:
        entry.message.references += 1
    taken = _entries(queue.set_credit(1, 8, NOW))
    assert [entry.message for entry in taken] == [entry.message for entry in shown]


def _alive() -> int:
    gc.collect()
    return sum(type(each) is Entry for each in gc.get_objects())


def test_packs_that_were_taken_leave_nothing_behind() -> None:
    queue = Queue()
    queue.attach(1)
    queue.on_mark(4, MANY, NOW)
    before = _alive()
    for message_id in range(MANY):
        queue.enqueue(_stored(message_id, NOW + 1000 if message_id % 256 == 7 else None), NOW)
    for _ in range(MANY // 100 - 1):
        for entry in _entries(queue.set_credit(1, 100, NOW)):
            queue.settle(1, entry, Verdict.ACCEPTED, NOW)
    del entry
    assert _alive() - before < 1000


@pytest.mark.parametrize("is_held_up", [False, True])
def test_what_expires_without_a_consumer_is_forgotten(is_held_up: bool) -> None:
    queue, before = Queue(), _alive()
    if is_held_up:
        queue.enqueue(_stored(0), NOW)
    for message_id in range(1, MANY):
        queue.enqueue(_stored(message_id, NOW + 1), NOW)
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
        queue.enqueue(_stored(message_id), NOW)
        for entry in _entries(queue.set_credit(1, 1, NOW)):
            queue.settle(1, entry, Verdict.ACCEPTED, NOW)
    assert _alive() - before < 2500


def test_a_purge_of_what_was_there_opens_nothing_that_came_later() -> None:
    queue = Queue()
    for message_id in range(1, MANY):
        queue.enqueue(_stored(message_id), NOW)
    end, before = queue.snapshot().enqueued_total, _alive()
    for message_id in range(MANY, 3 * MANY):
        queue.enqueue(_stored(message_id), NOW)
    assert len(queue.take_available(10 * MANY, end, Departure.PURGED, NOW)) == MANY - 1
    assert queue.snapshot().available_count == 2 * MANY
    assert _alive() < before + 1000


def _place(message: Message) -> tuple[int, int]:
    return -message.priority, message.message_id


class QueueWalk(RuleBasedStateMachine):
    """A random walk beside a model: who holds what, what has left, what is owed to nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = self.new_queue()
        self.now = NOW
        self.credit: dict[int, int] = {}
        self.held: dict[int, dict[int, Entry]] = {}
        self.live: dict[int, Message] = {}
        self.ahead: dict[int, list[Message]] = {}
        """Of browsers: what they have not been given yet."""
        self.on_the_way: list[Message] = []
        self.shunned: set[tuple[int, int]] = set()
        self.marks = dict.fromkeys(range(10), 0)
        self.wanted: dict[int, int] = {}
        self.next_id = 1
        self.next_consumer = 1

    def new_queue(self) -> Queue:
        return Queue()

    def is_there(self, message_id: int) -> bool:
        is_held = any(message_id in held for held in self.held.values())
        return message_id in self.live and not is_held and not self.live[message_id].is_expired(self.now)

    def browse(self, browser_id: int, entry: Entry) -> None:
        ahead = self.ahead[browser_id]
        assert self.credit[browser_id] > 0, "shown without credit"
        while (message := ahead.pop(0)).message_id != entry.message_id:
            assert not self.is_there(message.message_id), "passed over"
        assert self.is_there(message.message_id)
        self.credit[browser_id] -= 1

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Deliver(consumer_id, entry) if consumer_id in self.ahead:
                    self.browse(consumer_id, entry)
                    self.give(entry.message)
                case Deliver(consumer_id, entry):
                    assert self.credit[consumer_id] > 0, "given without credit"
                    assert entry.state is State.ACQUIRED
                    assert not any(entry.message_id in held for held in self.held.values()), "given twice"
                    assert (consumer_id, entry.message_id) not in self.shunned
                    assert not entry.message.is_expired(self.now)
                    assert (
                        not entry.message.is_stored
                        or entry.was_seen
                        or entry.message_id <= self.marks[entry.message.priority]
                    )
                    self.assert_it_was_next(consumer_id, entry)
                    self.credit[consumer_id] -= 1
                    self.held[consumer_id][entry.message_id] = entry
                    self.give(entry.message)
                case Archive(entry, departure):
                    del self.live[entry.message_id]
                    entry.message.references -= 1
                    assert departure is not Departure.EXPIRED or entry.message.is_expired(self.now)
                case Recount(entry):
                    assert entry.was_seen
                case WantMark(priority, message_id):
                    self.wanted[priority] = message_id
        for browser_id, ahead in self.ahead.items():
            if self.credit[browser_id] > 0:
                # It has passed what somebody holds, which may come back.
                assert not any(self.is_there(message.message_id) for message in ahead)
                ahead.clear()

    def assert_it_was_next(self, consumer_id: int, entry: Entry) -> None:
        for message_id, message in self.live.items():
            if self.is_there(message_id) and (consumer_id, message_id) not in self.shunned:
                assert _place(entry.message) <= _place(message)

    def give(self, message: Message) -> None:
        """Somebody has its body, until `write`."""
        message.references += 1
        self.on_the_way.append(message)

    @precondition(lambda self: self.on_the_way)
    @rule()
    def write(self) -> None:
        self.on_the_way.pop(0).references -= 1

    @rule(count=st.integers(1, 9), is_stored=st.booleans(), ttl_s=st.none() | st.integers(1, 5), priority=PRIORITIES)
    def enqueue(self, count: int, is_stored: bool, ttl_s: int | None, priority: int) -> None:
        for number in range(count):
            expires_at_s = None if ttl_s is None else self.now + ttl_s + number / 7
            message = _message(self.next_id, is_stored=is_stored, expires_at_s=expires_at_s, priority=priority)
            message.references = 1
            self.live[self.next_id] = message
            self.next_id += 1
            for ahead in self.ahead.values():
                ahead.append(message)
            self.carry_out(self.queue.enqueue(message, self.now))

    @rule()
    def attach_browser(self) -> None:
        self.queue.attach_browser(self.next_consumer)
        self.credit[self.next_consumer] = 0
        there = [message for message_id, message in self.live.items() if self.is_there(message_id)]
        self.ahead[self.next_consumer] = sorted(there, key=_place)
        self.next_consumer += 1

    @precondition(lambda self: self.ahead)
    @rule(data=st.data())
    def detach_browser(self, data: st.DataObject) -> None:
        browser_id = data.draw(st.sampled_from(sorted(self.ahead)))
        del self.ahead[browser_id], self.credit[browser_id]
        self.carry_out(self.queue.detach(browser_id, [], self.now))

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        limit = data.draw(st.integers(0, 6))
        before = len(self.live)
        self.carry_out(self.queue.take_available(limit, 10**9, Departure.PURGED, self.now))
        assert len(self.live) >= before - limit or self.queue.snapshot().departed_total["expired"]

    @rule()
    def attach(self) -> None:
        self.queue.attach(self.next_consumer)
        self.credit[self.next_consumer] = 0
        self.held[self.next_consumer] = {}
        self.next_consumer += 1

    @precondition(lambda self: self.credit)
    @rule(data=st.data(), credit=st.integers(0, 4))
    def set_credit(self, data: st.DataObject, credit: int) -> None:
        consumer_id = data.draw(st.sampled_from(sorted(self.credit)))
        self.credit[consumer_id] = credit
        self.carry_out(self.queue.set_credit(consumer_id, credit, self.now))

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data(), verdict=st.sampled_from(Verdict), shun=st.booleans())
    def settle(self, data: st.DataObject, verdict: Verdict, shun: bool) -> None:
        consumer_id = data.draw(st.sampled_from([key for key, held in self.held.items() if held]))
        entry = self.held[consumer_id].pop(data.draw(st.sampled_from(sorted(self.held[consumer_id]))))
        before = entry.delivery_count
        if shun:
            self.shunned.add((consumer_id, entry.message_id))
        self.carry_out(self.queue.settle(consumer_id, entry, verdict, self.now, shun=shun))
        assert entry.delivery_count == before + (verdict is Verdict.FAILED)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        consumer_id = data.draw(st.sampled_from(sorted(self.held)))
        held = self.held.pop(consumer_id)
        del self.credit[consumer_id]
        written = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        counts = {key: entry.delivery_count + (key in written) for key, entry in held.items()}
        unwritten = [entry for key, entry in held.items() if key not in written]
        self.carry_out(self.queue.detach(consumer_id, unwritten, self.now))
        assert counts == {key: entry.delivery_count for key, entry in held.items()}

    @precondition(lambda self: self.wanted)
    @rule()
    def raise_mark(self) -> None:
        priority, mark = self.wanted.popitem()
        self.marks[priority] = mark
        self.carry_out(self.queue.on_mark(priority, mark, self.now))

    @rule()
    def shed(self) -> None:
        free = [entry for entry, held_by in self.live.items() if not any(entry in held for held in self.held.values())]
        actions = self.queue.shed()
        assert [action.entry.message_id for action in actions if isinstance(action, Archive)] == free[:1]
        self.carry_out(actions)

    @rule(passed_s=st.integers(1, 3))
    def pass_time(self, passed_s: int) -> None:
        self.now += passed_s
        self.carry_out(self.queue.on_time(self.now))
        due = self.queue.next_deadline()
        assert due is None or due > self.now
        late = [each for each in self.live.values() if each.expires_at_s and each.expires_at_s <= self.now - PATIENCE_S]
        held = [message_id for of_consumer in self.held.values() for message_id in of_consumer]
        assert {each.message_id for each in late} <= set(held)

    @invariant()
    def counts_agree(self) -> None:
        snapshot = self.queue.snapshot()
        assert snapshot.available_count + snapshot.acquired_count == len(self.live)
        assert snapshot.acquired_count == sum(len(held) for held in self.held.values())
        assert snapshot.size_bytes == 10 * len(self.live)

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        for consumer_id, credit in self.credit.items():
            if credit > 0 and not self.wanted:
                assert self.queue.is_dry_for(consumer_id, self.now)

    def teardown(self) -> None:
        for held in self.held.values():
            held.clear()
        while actions := self.queue.drop_some(3):
            self.carry_out(actions)
        assert self.live == {}
        assert self.queue.is_empty


class PackedWalk(QueueWalk):
    """The same, with a queue that packs nearly all that waits."""

    def new_queue(self) -> Queue:
        return Queue(front_entries=1, pack_entries=2)


for walk in (QueueWalk, PackedWalk):
    walk.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestQueueWalk, TestPackedWalk = QueueWalk.TestCase, PackedWalk.TestCase

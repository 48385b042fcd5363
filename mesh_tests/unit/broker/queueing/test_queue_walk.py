"""Random walks of a queue beside a model of it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.queueing.action import Action, Archive, Deliver, Departure, Recount, SettlementVerdict, WantMark
from broker.queueing.message import MessageState, QueuedMessage, QueueEntry
from broker.queueing.queue import Queue
from mesh_tests.unit.broker.queues import NOW, new_message

PRIORITIES = st.sampled_from((4, 4, 4, 0, 9))
PATIENCE_S = 1.01
"""What is due in a pack may stay so long, and a millisecond."""


def _place(message: QueuedMessage) -> tuple[int, int]:
    return -message.priority, message.message_id


class QueueWalk(RuleBasedStateMachine):
    """A random walk beside a model: who holds what, what has left, what is owed to nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = self.new_queue()
        self.now = NOW
        self.credit: dict[int, int] = {}
        self.held: dict[int, dict[int, QueueEntry]] = {}
        self.live: dict[int, QueuedMessage] = {}
        self.shared: dict[int, QueuedMessage] = {}
        """Those that lie in another queue, too."""
        self.ahead: dict[int, list[QueuedMessage]] = {}
        """Of browsers: what they have not been given yet."""
        self.on_the_way: list[QueuedMessage] = []
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

    def browse(self, browser_id: int, entry: QueueEntry) -> None:
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
                    assert entry.state is MessageState.ACQUIRED
                    assert not any(entry.message_id in held for held in self.held.values()), "given twice"
                    assert (consumer_id, entry.message_id) not in self.shunned
                    assert not entry.message.is_expired(self.now)
                    assert entry.message is self.shared.get(entry.message_id, entry.message)
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

    def assert_it_was_next(self, consumer_id: int, entry: QueueEntry) -> None:
        for message_id, message in self.live.items():
            if self.is_there(message_id) and (consumer_id, message_id) not in self.shunned:
                assert _place(entry.message) <= _place(message)

    def give(self, message: QueuedMessage) -> None:
        """Somebody has its body, until `write`."""
        message.references += 1
        self.on_the_way.append(message)

    @precondition(lambda self: self.shared)
    @rule(where=st.integers(0, 1000))
    def take_elsewhere(self, where: int) -> None:
        """The other queue has done with one of them."""
        self.shared.pop(list(self.shared)[where % len(self.shared)]).references -= 1

    @precondition(lambda self: self.on_the_way)
    @rule()
    def write(self) -> None:
        self.on_the_way.pop(0).references -= 1

    @rule(
        count=st.integers(1, 9),
        is_stored=st.booleans(),
        is_shared=st.booleans(),
        ttl_s=st.none() | st.integers(1, 5),
        priority=PRIORITIES,
    )
    def enqueue(self, count: int, is_stored: bool, is_shared: bool, ttl_s: int | None, priority: int) -> None:
        for number in range(count):
            expires_at_s = None if ttl_s is None else self.now + ttl_s + number / 7
            message = new_message(self.next_id, is_stored=is_stored, expires_at_s=expires_at_s, priority=priority)
            message.references = 1
            if is_shared:
                message.references = 2
                self.shared[self.next_id] = message
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
    @rule(data=st.data(), verdict=st.sampled_from(SettlementVerdict), shun=st.booleans())
    def settle(self, data: st.DataObject, verdict: SettlementVerdict, shun: bool) -> None:
        consumer_id = data.draw(st.sampled_from([key for key, held in self.held.items() if held]))
        entry = self.held[consumer_id].pop(data.draw(st.sampled_from(sorted(self.held[consumer_id]))))
        before = entry.delivery_count
        if shun:
            self.shunned.add((consumer_id, entry.message_id))
        self.carry_out(self.queue.settle(consumer_id, entry, verdict, self.now, shun=shun))
        assert entry.delivery_count == before + (verdict is SettlementVerdict.FAILED)

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

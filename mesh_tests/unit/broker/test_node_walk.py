"""A random walk over a whole broker with crashes in it; the ledger is that of the crash test, in virtual time."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from broker.operating import administration
from mesh_tests.crash.ledger import Ledger
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import Client, Consumer, Producer, Received, Rig
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode, rejected
from wire.link import RECEIVE_SECOND, SEND_UNSETTLED
from wire.terminus import Durability, Expiry

OUTCOMES = [ACCEPTED, rejected("amqp:decode-error", "not wanted"), RELEASED, MODIFIED_FAILED]
WORK_PER_LIFE = 4
QUEUE, TOPIC, FILTER = "orders", "news.sport", "news.#"
SHARED_TOPIC, SHARED_FILTER = "alerts.fire", "alerts.#"
MOVED, PARKED = "its-name-here", "parked"


class Lane:
    """One producer and up to two consumers of a queue, or of a durable subscription, which they share if it is both.

    ``is_moved``: the counts of its messages begin anew whenever they are moved.
    """

    def __init__(self, source: str, target: str, *, is_moved: bool = False) -> None:
        self.is_moved = is_moved
        self.source = source
        self.target = target
        self.ledger = Ledger()
        self.numbers: dict[int, int] = {}
        self.producer: Producer | None = None
        self.consumers: list[Consumer] = []
        self.held: list[Received] = []
        self.unconfirmed: list[Received] = []

    def open(self, producing: Client, consuming: list[Client]) -> None:
        self.numbers = {}
        self.held, self.unconfirmed = [], []
        self.producer = producing.producer(self.target, f"to {self.target}")
        self.consumers = []
        for client in consuming:
            self.attach(client)

    def attach(self, client: Client) -> None:
        durable: dict[str, Any] = (
            {"durability": Durability.CONFIGURATION, "expiry": Expiry.NEVER} if "#" in self.source else {}
        )
        if self.source == SHARED_FILTER:
            durable["capabilities"] = ("shared", "global")
        modes = (SEND_UNSETTLED, RECEIVE_SECOND)
        self.consumers.append(
            client.consumer(self.source, 3, f"from {self.source}", settle_modes=modes, is_null=False, **durable)
        )

    def look(self) -> None:
        """Write down what came, what was accepted and what was confirmed."""
        if self.producer is not None:
            for sent, outcome in self.producer.outcomes.items():
                assert outcome == ACCEPTED
                self.ledger.accepted.add(self.numbers[sent])
        for consumer in self.consumers:
            for received in consumer.received:
                if self.is_moved:
                    self.ledger.released |= self.ledger.seen
                self.ledger.on_seen(received.message.message_id, received.message.delivery_count)
                self.held.append(received)
            consumer.received = []
        for received in [received for received in self.unconfirmed if received.is_confirmed]:
            self.unconfirmed.remove(received)
            self.ledger.confirmed.add(received.message.message_id)


class BrokerWalk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # So that a move of a few takes several.
        self.steps = pytest.MonkeyPatch()
        self.steps.setattr(administration, "PART_MESSAGES", 2)
        self.directory = Path(tempfile.mkdtemp())
        self.rig = Rig(self.directory / "data")
        self.lanes = [
            Lane(QUEUE, QUEUE),
            Lane(SHARED_FILTER, SHARED_TOPIC),
            Lane(FILTER, TOPIC),
            Lane(MOVED, MOVED, is_moved=True),
        ]
        self.next_number = 1
        self.open()

    def open(self) -> None:
        self.worked = 0
        self.producing = self.rig.client("producing")
        self.consuming = [self.rig.client("consuming"), self.rig.client("also consuming")]
        self.operator = Operator(self.rig)
        for lane in self.lanes[2:]:
            lane.open(self.producing, self.consuming[:1])
        for lane in self.lanes[:2]:
            lane.open(self.producing, self.consuming)
        self.look()

    def look(self) -> None:
        for lane in self.lanes:
            lane.look()

    @rule(lane=st.integers(0, 3), is_large=st.booleans(), count=st.integers(1, 4))
    def send(self, lane: int, is_large: bool, count: int) -> None:
        self.worked += 1
        sending = self.lanes[lane]
        assert sending.producer is not None
        for _ in range(count):
            number, self.next_number = self.next_number, self.next_number + 1
            body = bytes(100_000 if is_large else 100)
            sending.numbers[sending.producer.send(body, message_id=number)] = number
        self.look()

    @rule(lane=st.integers(0, 3), places=st.lists(st.integers(0, 5), max_size=4), outcome=st.sampled_from(OUTCOMES))
    def settle(self, lane: int, places: list[int], outcome: Outcome) -> None:
        self.worked += 1
        settling = self.lanes[lane]
        for place in places:
            if place < len(settling.held):
                self._settle(settling, settling.held.pop(place), outcome)
        self.look()

    def _settle(self, lane: Lane, received: Received, outcome: Outcome) -> None:
        number = received.message.message_id
        is_final = outcome.kind in (OutcomeCode.ACCEPTED, OutcomeCode.REJECTED)
        if is_final:
            lane.ledger.settled.add(number)
            lane.unconfirmed.append(received)
        elif outcome is RELEASED:
            lane.ledger.released.add(number)
        received.give(outcome, settles=not is_final)
        received.consumer.link.grant(1)
        self.rig.run()

    @rule(ends=st.permutations((MOVED, PARKED)), steps=st.integers(0, 3))
    def move(self, ends: list[str], steps: int) -> None:
        """Begin to; the steps that are left come later."""
        self.worked += 1
        self.operator.send(json.dumps({"op": "move", "source": ends[0], "target": ends[1]}))
        for _ in range(steps):
            self.rig.node.on_time(self.rig.now)
            self.rig.run_now()
        self.look()

    @rule()
    def hold_disk(self) -> None:
        self.rig.is_disk_held = True

    @precondition(lambda self: self.rig.is_disk_held)
    @rule()
    def free_disk(self) -> None:
        self.rig.is_disk_held = False
        self.rig.run()
        self.look()

    @precondition(lambda self: not self.rig.is_disk_held)
    @rule(which=st.integers(0, 1))
    def lose_a_consumer(self, which: int) -> None:
        self.consuming[which].vanish()
        client = self.consuming[which] = self.rig.client(["consuming", "also consuming"][which])
        for lane in self.lanes[:2] if which else self.lanes:
            lost = lane.consumers[which]
            lane.held = [received for received in lane.held if received.consumer is not lost]
            lane.unconfirmed = [received for received in lane.unconfirmed if received.consumer is not lost]
            lane.attach(client)
            lane.consumers.insert(which, lane.consumers.pop())
            lane.consumers.remove(lost)
        self.look()

    # A life must be long enough for something to happen in it.
    @precondition(lambda self: self.worked >= WORK_PER_LIFE)
    @rule()
    def crash(self) -> None:
        self.rig.crash()
        self.open()

    @precondition(lambda self: self.worked >= WORK_PER_LIFE)
    @rule()
    def restart(self) -> None:
        self.rig.is_disk_held = False
        self.rig.run()
        self.look()
        self.rig.restart()
        self.open()

    def teardown(self) -> None:
        self.rig.is_disk_held = False
        self.rig.run()
        self.look()
        self.rig.restart()
        Operator(self.rig).ask("move", source=PARKED, target=MOVED)
        client = self.rig.client("consuming")
        for lane in self.lanes:
            lane.producer, lane.consumers = None, []
            lane.attach(client)
            lane.consumers[0].link.grant(10_000)
            self.rig.run()
            lane.ledger.seen_at_end = {received.message.message_id for received in lane.consumers[0].received}
            lane.look()
            assert lane.ledger.lost() == set()
            assert lane.ledger.resurrected == set()
            assert lane.ledger.unmarked == set()
        self.steps.undo()
        self.rig.store.close()
        shutil.rmtree(self.directory)


BrokerWalk.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestBrokerWalk = BrokerWalk.TestCase

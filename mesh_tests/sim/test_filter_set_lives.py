"""Random lives of filter sets, by seed: sets change while messages flow, and paths to the broker are lost.

A message that matches the set at all times between its sending and its outcome comes exactly once, one that never
matches does not come, and none comes twice. While a path is lost, messages may be missed; afterwards the set works
again.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from proton import Message

from addressing.filter_kinds import FilterKind
from addressing.pattern import PatternSet
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.seeds import seeds
from mesh_tests.unit.broker.queueing.test_topic import NAIVE
from wire.codec.values import Described, Symbol
from wire.delivery import ACCEPTED
from wire.filter_set import CONTROL, FILTER_SET

PAUSES_S = (0.0, 0.0005, 0.002, 0.02)
ON_THE_WAY_S = 0.2
"""Deliveries that are at their receivers after this time are not lost with a path."""
LEVELS = ("a", "a", "a", "b", "b", "c", "$x")
WILDCARDS = {FilterKind.AMQP: "*", FilterKind.MQTT: "+"}
SOURCES = ("t/#", "t/a/#", "t/*/b")


@dataclass
class Sent:
    address: str
    first_state: dict[Subscriber, int]
    """For each subscriber, the number of its states that were certain to be over when the message was sent."""
    last_state: dict[Subscriber, int] = field(default_factory=dict)
    """For each subscriber, the number of its last state that may have begun before the deliveries came."""
    answered_at: float = 0.0


@dataclass(eq=False)
class Subscriber:
    """A client with a set. Its states are the sets that may be in effect, in order; None: perhaps not attached."""

    router: str
    kind: FilterKind
    source: str
    client: SimClient | None = None
    receiver: SimReceiver | None = None
    control: SimSender | None = None
    states: list[frozenset[str] | None] = field(default_factory=lambda: [None])
    settled_count: int = 0
    """Number of the present state that is certain: changes behind it have no outcome yet."""
    serial: int = 0
    pending: dict[int, int] = field(default_factory=dict)
    """Message number of a change -> the number of the state that the change begins."""
    received: list[str] = field(default_factory=list)

    def begin_state(self, state: frozenset[str] | None) -> int:
        self.states.append(state)
        return len(self.states) - 1

    @property
    def is_whole(self) -> bool:
        ends = (self.receiver, self.control)
        return all(end is not None and end.error is None and end.link.is_open for end in ends)

    def takes(self, state: frozenset[str] | None, address: str) -> bool:
        in_source = address in PatternSet([self.source])
        return in_source and state is not None and any(NAIVE[self.kind](each, address) for each in state)


class Life:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.mesh = SimMesh(
            {
                "mesh": "m",
                "node_tls": False,
                "routers": {
                    "r1": {"connect": ["r2", "r3"]},
                    "r2": {"connect": ["r3"]},
                    "r3": {},
                    "e1": {"mode": "edge", "connect": ["r1", "r2"]},
                },
                "brokers": {"b1": {"data": "b1", "routers": ["r3"]}},
                "addresses": {"t/#": "topic"},
            },
            folder,
        )
        self.mesh.converge()
        self.mesh.run(0.5)
        self.publishers = [self.mesh.client(router, f"p{router}").sender(None) for router in ("r1", "r3")]
        self.mesh.run_until(lambda: all(each.link.credit > 0 for each in self.publishers))
        self.open: dict[tuple[int, int], str] = {}
        self.sent: dict[str, Sent] = {}
        self.subscribers = [
            Subscriber(router, self.random.choice(list(FilterKind)), self.random.choice(SOURCES))
            for router in ("r1", "r2", "r3", "e1")
        ]
        for each in self.subscribers:
            self.attach(each)

    # What happens
    def attach(self, each: Subscriber) -> None:
        """Attach a subscriber anew, with the whole set that it wants."""
        if each.client is None:
            each.client = self.mesh.client(each.router, f"s{each.router}")
        wanted = frozenset(self.filters(each.kind, 4))
        described = Described(Symbol(FILTER_SET), [Symbol(each.kind.value), sorted(wanted)])
        each.begin_state(None)
        state = each.begin_state(wanted)
        each.receiver = each.client.receiver(each.source, name="mine", filter={"f": described}, credit=1000)
        receiver = each.receiver
        self.mesh.run_until(lambda: receiver.link.is_open or receiver.error is not None)
        if receiver.error is not None:
            return
        each.control = each.client.sender(each.source, name="mine", capabilities=(CONTROL,))
        control = each.control
        self.mesh.run_until(lambda: control.link.credit > 0 or control.error is not None)
        each.settled_count, each.serial, each.pending = state, 0, {}

    def filters(self, kind: FilterKind, most: int) -> set[str]:
        found = set()
        for _ in range(self.random.randint(0, most)):
            levels = self.random.choices((*LEVELS, WILDCARDS[kind]), k=self.random.randint(1, 3))
            found.add("/".join(["t", *levels, *(["#"] if self.random.random() < 0.3 else [])]))
        return found

    def change(self, each: Subscriber) -> None:
        assert each.control is not None
        if not each.is_whole or each.control.link.credit <= 0:
            return
        now = each.states[-1]
        assert now is not None
        added, removed = self.filters(each.kind, 3), set(self.random.sample(sorted(now), len(now) // 2))
        added -= removed
        each.serial += 1
        lists = {"add": sorted(added), "remove": sorted(removed)}
        number = each.control.send(bytes(Message({"serial": each.serial, **lists}).encode()))
        each.pending[number] = each.begin_state((now | added) - removed)

    def publish(self) -> None:
        place = self.random.randrange(len(self.publishers))
        sender = self.publishers[place]
        if sender.link.credit <= 0:
            return
        address = "/".join(["t", *self.random.choices(LEVELS, k=self.random.randint(1, 3))])
        body = f"{address} {len(self.sent)}"
        number = sender.send(bytes(Message(address=address, body=body).encode()))
        self.open[place, number] = body
        self.sent[body] = Sent(address, {each: each.settled_count for each in self.subscribers})

    def look(self) -> None:
        """Note the outcomes and messages that came meanwhile, and what was lost."""
        for each in self.subscribers:
            if not each.is_whole:
                if each.states[-1] is not None:
                    each.begin_state(None)
            elif each.control is not None:
                for number in [number for number in each.pending if number in each.control.outcomes]:
                    assert each.control.outcomes[number] == ACCEPTED
                    each.settled_count = max(each.settled_count, each.pending.pop(number))
        for (place, number), body in list(self.open.items()):
            if number in self.publishers[place].outcomes:
                del self.open[place, number]
                self.sent[body].last_state = {each: len(each.states) - 1 for each in self.subscribers}
                self.sent[body].answered_at = self.mesh.now

    def step(self, *, with_losses: bool) -> None:
        kind = self.random.random()
        if kind < 0.6:
            self.publish()
        elif kind < 0.9 or not with_losses:
            self.change(self.random.choice(self.subscribers))
        elif kind < 0.97:
            self.lose()
        self.mesh.run(self.random.choice(PAUSES_S))
        self.look()

    def lose(self) -> None:
        each = self.random.choice(self.subscribers)
        way = self.random.choice(("broker", "trunk", "client", "receiver"))
        for subscriber in self.subscribers:
            lost = subscriber.begin_state(None)
            for sent in self.sent.values():
                if sent.last_state and sent.answered_at > self.mesh.now - ON_THE_WAY_S:
                    sent.last_state[subscriber] = lost
        if way == "broker":
            self.mesh.kill_broker("b1")
            self.mesh.run(0.3)
            self.mesh.start_broker("b1")
        elif way == "trunk" and frozenset(("r1", "r3")) in self.mesh.trunks:
            self.mesh.cut_trunk("r1", "r3")
            self.mesh.run(0.3)
            self.mesh.link("r1", "r3")
        elif way == "client" and each.client is not None:
            self.mesh.cut(each.client.pipe)
            self.keep(each)
            each.client = None
        elif way == "receiver" and each.receiver is not None and each.is_whole:
            each.receiver.link.close()
        self.mesh.run(2)
        for subscriber in self.subscribers:
            if subscriber.client is None or not subscriber.is_whole:
                self.keep(subscriber)
                self.attach(subscriber)
            else:
                # What was lost had nothing to do with this subscriber: its present set stays in effect.
                present = [state for state in subscriber.states if state is not None][-1]
                subscriber.settled_count = subscriber.begin_state(present)
                subscriber.pending = {}
        self.look()

    def keep(self, each: Subscriber) -> None:
        """Keep what a receiver got whose link is over."""
        if each.receiver is not None:
            each.received += [self.body_of(data) for data in each.receiver.messages]
            each.receiver = None

    def body_of(self, data: bytes) -> str:
        message = Message()
        message.decode(data)
        body = str(message.body)
        assert message.instructions["x-opt-to"] == self.sent[body].address
        return body

    # What must hold
    def check(self) -> int:
        """Compare what came with the states; return the number of deliveries that had to be there."""
        wanted_count = 0
        for each in self.subscribers:
            self.keep(each)
            counts = Counter(each.received)
            for body, sent in self.sent.items():
                states = each.states[sent.first_state[each] : sent.last_state[each] + 1]
                takes = [each.takes(state, sent.address) for state in states]
                place = f"{each.router} ({each.kind}, {each.source}): {body!r} came {counts[body]} times"
                assert counts[body] <= 1, place
                if all(takes):
                    wanted_count += 1
                    assert counts[body] == 1, f"{place}, states {states}"
                if not any(takes):
                    assert counts[body] == 0, f"{place}, states {states}"
        return wanted_count

    def come_to_rest(self) -> None:
        self.mesh.run_until(lambda: self.is_at_rest())
        self.mesh.run(2)
        self.look()

    def is_at_rest(self) -> bool:
        self.look()
        return not self.open and not any(each.pending for each in self.subscribers if each.is_whole)


@pytest.mark.parametrize("seed", seeds(8))
def test_each_message_that_matches_the_set_in_effect_comes_exactly_once(tmp_path: Path, seed: int) -> None:
    life = Life(seed, tmp_path)
    for _ in range(400):
        life.step(with_losses=False)
    life.come_to_rest()
    assert all(each.is_whole for each in life.subscribers)
    assert life.check() > 10
    life.mesh.close()


@pytest.mark.parametrize("seed", seeds(6))
def test_sets_work_again_after_losses_and_nothing_comes_twice_or_without_a_match(tmp_path: Path, seed: int) -> None:
    life = Life(seed, tmp_path)
    for _ in range(250):
        life.step(with_losses=True)
    for _ in range(100):
        life.step(with_losses=False)
    life.come_to_rest()
    assert all(each.is_whole for each in life.subscribers)
    assert life.check() > 10
    life.mesh.close()

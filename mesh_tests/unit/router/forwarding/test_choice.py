"""Who gets the next delivery, among few consumers and among many, against a plain search through all of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig

SMALL_BYTES, LIMIT_BYTES = 100, 1000
STEPS = 150


@dataclass(eq=False)
class Known:
    """A consumer, or a circuit if ``cost`` is above 0, and what the model knows of it."""

    consumer: Consumer
    cost: int
    limit_bytes: int | None
    credit: int = 0
    last_turn: int = 0

    @property
    def outstanding(self) -> int:
        return len(self.consumer.held)


@dataclass
class Life:
    rig: Rig
    rng: random.Random
    closest: bool
    spills: bool
    known: list[Known] = field(default_factory=list)
    turns: int = 0
    sent: int = 0

    def __post_init__(self) -> None:
        self.group = self.rig.anycast(closest=self.closest, spills=self.spills)
        # An address has a consumer here, so that circuits that end here lead somewhere.
        self.attach(cost=0, limited=False)
        self.producers = [self.rig.producer(self.group, 1000), self.rig.producer(self.group, 1000, is_circuit=True)]

    def attach(self, cost: int, *, limited: bool) -> None:
        limit = LIMIT_BYTES if limited else None
        consumer = self.rig.consumer(self.group, 0, cost=cost, max_message_bytes=limit)
        self.known.append(Known(consumer, cost, limit))

    def some(self) -> Known:
        return self.rng.choice(self.known)

    def step(self) -> None:
        kind = self.rng.choices(("send", "answer", "grant", "attach", "leave", "cost"), (8, 5, 6, 1, 1, 1))[0]
        {
            "send": self.send,
            "answer": self.answer,
            "grant": self.grant,
            "attach": self.attach_one,
            "leave": self.leave,
            "cost": self.change_cost,
        }[kind]()
        self.rig.run()

    def send(self) -> None:
        producer = self.rng.choice(self.producers)
        size = self.rng.choice((SMALL_BYTES, 2 * LIMIT_BYTES))
        best = self.best(producer, size)
        # Without a taker that has credit, the delivery would wait: that is another test's.
        if best is None or not producer.link.credit:
            return
        self.sent += 1
        message = b"%d " % self.sent
        producer.send(message.ljust(size, b"x"))
        self.rig.run()
        (got,) = (
            each for each in self.known if each.consumer.messages and each.consumer.messages[-1].startswith(message)
        )
        assert got is best, (self.describe(got), self.describe(best))
        got.credit -= 1
        self.turns += 1
        got.last_turn = self.turns

    def best(self, producer: Producer, size: int) -> Known | None:
        may_have = [
            each
            for each in self.known
            if not (producer.inlet.is_circuit and each.cost) and not (each.limit_bytes and size > each.limit_bytes)
        ]
        if self.closest and not self.spills:
            nearest = min((each.cost for each in may_have), default=0)
            may_have = [each for each in may_have if each.cost == nearest]
        ready = [each for each in may_have if each.credit > 0]
        return min(ready, key=self.rank, default=None)

    def rank(self, each: Known) -> tuple[int, int]:
        return each.cost + (0 if self.closest else each.outstanding), each.last_turn

    def describe(self, each: Known) -> dict[str, Any]:
        return {"at": self.known.index(each), "cost": each.cost, "held": each.outstanding, "turn": each.last_turn}

    def answer(self) -> None:
        some = self.some()
        if some.consumer.held:
            some.consumer.answer(count=self.rng.randint(1, some.outstanding))

    def grant(self) -> None:
        some = self.some()
        credit = self.rng.randint(1, 3)
        some.credit += credit
        some.consumer.link.grant(credit)

    def attach_one(self) -> None:
        self.attach(self.rng.choice((0, 0, 1, 2, 5)), limited=self.rng.random() < 0.3)

    def leave(self) -> None:
        gone = self.some()
        if len(self.known) > 1 and gone is not self.known[0]:
            # A delivery that comes back would be offered to others.
            gone.consumer.answer()
            self.rig.run()
            self.known.remove(gone)
            gone.consumer.link.close()

    def change_cost(self) -> None:
        some = self.some()
        if some.cost:
            some.cost = self.rng.choice((1, 2, 5))
            some.consumer.taker.set_cost(some.cost)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("takers", [2, 8, 40])
@pytest.mark.parametrize(("closest", "spills"), [(False, False), (True, True), (True, False)])
def test_the_best_taker_is_chosen_however_many_there_are(
    rig: Rig, seed: int, takers: int, closest: bool, spills: bool
) -> None:
    life = Life(rig, random.Random(seed), closest, spills)
    while len(life.known) < takers:
        life.attach_one()
    for _ in range(STEPS):
        life.step()
    assert life.sent > STEPS // 8

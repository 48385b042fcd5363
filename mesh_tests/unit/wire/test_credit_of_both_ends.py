"""Do both ends of a link have the same credit, whatever sender and receiver do, and in whatever order?"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from mesh_tests.unit.wire.pipes import Pipe
from wire import delivery as deliveries

STEPS = 200


class Life:
    """Random acts of a sender and a receiver; bytes cross the wire only in ``pipe.run``."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pipe = Pipe(window_frames=8, max_frame_bytes=512)
        self.sender, self.receiver = self.pipe.link_pair()
        self.begun: int | None = None
        self.count = 0

    def acts(self) -> list[Callable[[], None]]:
        """What the rules allow now. [2.6.7]"""
        acts = [self.grant, self.reduce, self.drain, self.pipe.run, self.read]
        if self.sender.is_draining:
            acts.append(self.sender.drained)
        if self.begun is not None:
            acts += [self.go_on, self.finish, self.abort]
        elif self.sender.credit > 0:
            acts += [self.begin, self.send]
        return acts

    def grant(self) -> None:
        self.receiver.grant(self.random.randint(1, 5))

    def reduce(self) -> None:
        self.receiver.set_credit(self.random.randint(0, max(0, self.receiver.credit)))

    def drain(self) -> None:
        self.receiver.request_drain(self.random.randint(0, 2))

    def begin(self) -> None:
        self.count += 1
        self.begun = self.sender.start(b"%d" % self.count)
        self.go_on()

    def go_on(self) -> None:
        self.sender.send(bytes(self.random.choice((1, 600, 5000))))

    def finish(self) -> None:
        self.sender.finish()
        self.begun = None

    def abort(self) -> None:
        self.sender.abort(self.begun)
        self.begun = None

    def send(self) -> None:
        self.begin()
        self.finish()

    def read(self) -> None:
        """Take the bytes of an incomplete message; the sink takes complete messages."""
        current = self.receiver.current
        if current is not None:
            self.receiver.recv(deliveries.pending(current))

    def read_all(self) -> None:
        count = -1
        while count != (count := self.pipe.b.bytes_in):
            self.pipe.run()
            self.read()
            self.pipe.run()

    def rest(self) -> None:
        """Until all is said: a begun delivery ends, a drain is answered."""
        self.read_all()
        if self.begun is not None:
            self.finish()
        self.read_all()
        if self.sender.is_draining:
            self.sender.drained()
        self.read_all()
        # The count of a sender may be below zero until the next flow, which has the count of the receiver.
        self.receiver.set_credit(self.receiver.credit + 7)
        self.read_all()


@pytest.mark.parametrize("seed", range(100))
def test_both_ends_have_the_same_credit_when_all_is_said(seed: int) -> None:
    life = Life(seed)
    for step in range(STEPS):
        life.random.choice(life.acts())()
        if step % 20 == 19:
            life.rest()
            assert life.sender.credit == life.receiver.credit, f"after {step + 1} steps"

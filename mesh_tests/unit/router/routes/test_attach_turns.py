"""Link routes that all attach again at one moment do so in turns, so that the router serves others in between."""

from __future__ import annotations

import pytest

from router.routes.attach_turns import ATTACHES_AT_ONCE, AttachTurns
from router.timers import Timers

MANY = 10 * ATTACHES_AT_ONCE


class Route:
    def __init__(self, attached: list[Route]) -> None:
        self._attached = attached

    def attach(self) -> None:
        self._attached.append(self)


class Meeting:
    """``routes`` want their turns; ``attached``: those that had them, in order."""

    def __init__(self, count: int) -> None:
        self.timers = Timers()
        self.turns = AttachTurns(self.timers)
        self.attached: list[Route] = []
        self.routes = [Route(self.attached) for _ in range(count)]

    def take(self) -> None:
        for route in self.routes:
            self.turns.take(route)

    def next_turn(self) -> int:
        """How many routes attached in the next turn; time goes on to that turn."""
        before = len(self.attached)
        deadline = self.timers.next_deadline()
        assert deadline is not None
        assert deadline > self.timers.now
        self.timers.run(deadline)
        return len(self.attached) - before


def test_few_routes_attach_at_once():
    meeting = Meeting(ATTACHES_AT_ONCE)
    meeting.take()
    assert meeting.attached == meeting.routes
    assert meeting.timers.next_deadline() is None


def test_many_routes_attach_in_turns_in_the_order_in_which_they_came():
    meeting = Meeting(MANY)
    meeting.take()
    assert meeting.attached == meeting.routes[:ATTACHES_AT_ONCE]
    while len(meeting.attached) < MANY:
        assert meeting.next_turn() == ATTACHES_AT_ONCE
    assert meeting.attached == meeting.routes
    assert meeting.timers.next_deadline() is None


def test_nobody_overtakes_those_that_wait():
    meeting = Meeting(MANY)
    meeting.take()
    meeting.timers.run(meeting.timers.now + 0.0001)
    late = Route(meeting.attached)
    meeting.turns.take(late)
    while len(meeting.attached) <= MANY:
        meeting.next_turn()
    assert meeting.attached == [*meeting.routes, late]


def test_another_moment_has_turns_of_its_own():
    meeting = Meeting(ATTACHES_AT_ONCE)
    for moment in range(3):
        meeting.timers.run(float(moment))
        meeting.take()
        assert len(meeting.attached) == (moment + 1) * ATTACHES_AT_ONCE


@pytest.mark.parametrize("leaver", [ATTACHES_AT_ONCE, MANY - 1])
def test_who_has_left_and_who_asks_twice_gets_no_second_turn(leaver: int):
    meeting = Meeting(MANY)
    meeting.take()
    meeting.turns.take(meeting.routes[-2])
    meeting.turns.leave(meeting.routes[leaver])
    meeting.turns.leave(meeting.routes[leaver])
    while meeting.timers.next_deadline() is not None:
        meeting.next_turn()
    assert meeting.attached == meeting.routes[:leaver] + meeting.routes[leaver + 1 :]

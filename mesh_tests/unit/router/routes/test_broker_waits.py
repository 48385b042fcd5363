"""Link routes that wait for a broker: nobody tries without a path, few try at a time, and good news spreads."""

from __future__ import annotations

from math import inf

import pytest

from router.routes.attach_turns import ATTACHES_AT_ONCE, AttachTurns
from router.routes.broker_waits import BrokerWaits
from router.routing.spf import Path
from router.timers import Timers

MANY = 20 * ATTACHES_AT_ONCE
OVER_R2: Path = ("r1", "r2")
OVER_R3: Path = ("r1", "r3")


class Meeting:
    """Routes to broker b1, over ``path``; ``tries`` says who attached when. A try fails unless ``is_answering``."""

    def __init__(self, path: Path | None, count: int) -> None:
        self.path = path
        self.is_answering = False
        self.timers = Timers()
        self.waits = BrokerWaits(self.timers, AttachTurns(self.timers), lambda broker: self.path)
        self.tries: list[tuple[float, Route]] = []
        self.attached: list[Route] = []
        self.routes = [Route(self) for _ in range(count)]
        for route in self.routes:
            self.waits.add("b1", route)

    def run(self, seconds: float) -> None:
        end = self.timers.now + seconds
        while (deadline := self.timers.next_deadline()) is not None and deadline <= end:
            self.timers.run(deadline)
        self.timers.run(end)

    def move(self, path: Path | None) -> None:
        self.path = path
        self.waits.on_paths_changed()


class Route:
    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting

    def attach(self) -> None:
        meeting = self._meeting
        meeting.tries.append((meeting.timers.now, self))
        if meeting.is_answering:
            meeting.attached.append(self)
            # The answer takes a round trip.
            meeting.timers.after(0.01, lambda: meeting.waits.on_answered("b1"))
        else:
            meeting.waits.add("b1", self)


def test_without_a_path_nobody_tries_and_no_timer_runs():
    meeting = Meeting(None, MANY)
    assert meeting.timers.next_deadline() is None
    meeting.move(None)
    assert meeting.timers.next_deadline() is None
    assert not meeting.tries


@pytest.mark.parametrize("before", [None, OVER_R3])
def test_all_take_their_turns_when_another_path_appears(before: Path | None):
    meeting = Meeting(before, MANY)
    meeting.is_answering = True
    meeting.move(OVER_R2)
    meeting.run(0.04)
    assert not meeting.tries
    meeting.run(0.01 + 0.001 * MANY / ATTACHES_AT_ONCE)
    assert [route for _, route in meeting.tries] == meeting.routes


def test_a_change_of_other_paths_makes_nobody_try():
    meeting = Meeting(OVER_R2, MANY)
    meeting.move(OVER_R2)
    meeting.run(0.05)
    assert len(meeting.tries) == ATTACHES_AT_ONCE


def test_no_path_stops_the_tries():
    meeting = Meeting(OVER_R2, MANY)
    meeting.move(None)
    meeting.run(1.0)
    assert not meeting.tries


def test_few_try_at_a_time_and_each_gets_its_turn_while_the_broker_does_not_answer():
    meeting = Meeting(OVER_R2, MANY)
    meeting.run(0.2 * MANY / ATTACHES_AT_ONCE)
    moments: dict[float, list[Route]] = {}
    for moment, route in meeting.tries:
        moments.setdefault(round(moment, 6), []).append(route)
    assert {len(routes) for routes in moments.values()} == {ATTACHES_AT_ONCE}
    assert list(moments)[:4] == [0.05, 0.15, 0.35, 0.55]
    assert [route for _, route in meeting.tries][:MANY] == meeting.routes


def test_with_answers_twice_as_many_try_with_each_round_trip():
    meeting = Meeting(OVER_R2, MANY)
    meeting.is_answering = True
    meeting.run(0.05 + 0.01 * 6)
    assert len(set(meeting.attached)) == len(meeting.attached) == MANY


def test_a_single_route_tries_less_and_less_often():
    meeting = Meeting(OVER_R2, 1)
    meeting.run(1.0)
    assert [round(moment, 6) for moment, _ in meeting.tries] == [0.05, 0.15, 0.35, 0.55, 0.75, 0.95]


def test_a_route_that_has_ended_tries_no_more_and_leaves_no_timer():
    meeting = Meeting(OVER_R2, 2)
    meeting.waits.discard("b1", meeting.routes[0])
    meeting.run(0.1)
    assert [route for _, route in meeting.tries] == [meeting.routes[1]]
    meeting.waits.discard("b1", meeting.routes[1])
    assert meeting.timers.next_deadline() is None


def test_an_answer_and_a_new_path_are_good_news_and_a_lost_path_is_none():
    meeting = Meeting(OVER_R2, 1)
    assert meeting.waits.heard_at("b1") == -inf
    meeting.run(1.0)
    meeting.waits.on_answered("b1")
    assert meeting.waits.heard_at("b1") == 1.0
    meeting.run(1.0)
    meeting.move(None)
    assert meeting.waits.heard_at("b1") == 1.0
    meeting.move(OVER_R2)
    assert meeting.waits.heard_at("b1") == 2.0
    assert meeting.waits.heard_at("b2") == -inf

"""When does a router say that the filters it advertises, or those of another router, are in effect?"""

from __future__ import annotations

from typing import Any, cast

from router.in_effect import ChangesInEffect
from router.routing.actions import ConfirmationRequest
from router.routing.edges import EdgeRouters
from router.routing.plane import Plane
from router.timers import Timers


class FakePlane:
    """``confirmed``: the version that all routers confirmed; ``seen``: the version known of another router."""

    def __init__(self) -> None:
        self.confirmed = (0, 0)
        self.seen = (0, 0)
        self.version = (1, 1)

    def want_confirmed(self, now: float) -> tuple[tuple[int, int], list[Any]]:
        return self.version, [("asked", self.version)]

    def is_confirmed(self, version: tuple[int, int]) -> bool:
        return self.confirmed >= version

    def has_seen(self, router: str, version: tuple[int, int]) -> bool:
        return self.seen >= version

    def confirm(self, router: str, version: tuple[int, int]) -> list[Any]:
        return [("confirmed", router, version)]


class FakeEdges:
    def __init__(self) -> None:
        self.confirmed = 1 << 30

    def check(self, number: int) -> list[Any]:
        return [("edges", number)]

    def is_confirmed(self, number: int) -> bool:
        return self.confirmed >= number

    def confirm(self, edge: str, seq: int) -> list[Any]:
        return [("told edge", edge, seq)]


class Rig:
    def __init__(self) -> None:
        self.plane, self.edges, self.timers = FakePlane(), FakeEdges(), Timers()
        self.is_settled = True
        self.done: list[str] = []
        self.acts: list[Any] = []
        self.changes = ChangesInEffect(
            cast("Plane", self.plane),
            cast("EdgeRouters", self.edges),
            lambda: self.is_settled,
            self.acts.extend,
            self.timers,
            2.0,
        )

    def wait(self, name: str) -> None:
        self.changes.wait(lambda: self.done.append(name))

    def look_at(self, now: float) -> None:
        self.timers.run(now)
        self.changes.look()


def test_a_change_is_in_effect_once_the_others_the_edges_and_the_router_itself_have_it() -> None:
    rig = Rig()
    rig.is_settled, rig.edges.confirmed = False, 0
    rig.wait("a")
    rig.plane.confirmed = (1, 1)
    rig.look_at(0.1)
    assert (rig.done, rig.acts) == ([], [("asked", (1, 1))])
    rig.is_settled = True
    rig.look_at(0.2)
    assert (rig.done, rig.acts[1:]) == ([], [("edges", 1)])
    rig.edges.confirmed = 1
    rig.plane.confirmed = (1, 0)
    rig.look_at(0.3)
    assert rig.done == []
    rig.plane.confirmed = (1, 1)
    rig.look_at(0.4)
    assert rig.done == ["a"]
    assert not rig.changes.is_waiting


def test_changes_are_done_in_their_order_and_edges_are_asked_once_for_several() -> None:
    rig = Rig()
    rig.wait("a")
    rig.plane.version = (1, 2)
    rig.wait("b")
    rig.plane.confirmed = (1, 2)
    rig.look_at(0.1)
    assert rig.done == ["a", "b"]
    assert [act for act in rig.acts if act[0] == "edges"] == [("edges", 1)]


def test_a_wait_ends_in_time_and_another_router_is_then_told_nothing() -> None:
    rig = Rig()
    rig.wait("a")
    rig.changes.on_asked(ConfirmationRequest("r2", (7, 3)))
    rig.look_at(1.9)
    assert rig.done == []
    assert rig.changes.is_waiting
    rig.look_at(2.0)
    assert rig.done == ["a"]
    assert not rig.changes.is_waiting
    assert [act for act in rig.acts if act[0] == "confirmed"] == []


def test_another_router_is_answered_once_its_addresses_are_here_and_settled() -> None:
    rig = Rig()
    rig.changes.on_asked(ConfirmationRequest("r2", (7, 3)))
    rig.changes.on_asked(ConfirmationRequest("r2", (7, 3)))
    rig.look_at(0.1)
    rig.plane.seen, rig.is_settled = (7, 3), False
    rig.look_at(0.2)
    assert rig.acts == []
    rig.is_settled = True
    rig.look_at(0.3)
    assert rig.acts == [("edges", 1), ("confirmed", "r2", (7, 3))]


def test_an_edge_router_is_answered_once_all_others_have_what_it_takes() -> None:
    rig = Rig()
    rig.changes.on_asked(ConfirmationRequest("e1", (0, 4), is_edge=True))
    rig.look_at(0.1)
    assert ("told edge", "e1", 4) not in rig.acts
    rig.plane.confirmed = (1, 1)
    rig.look_at(0.2)
    assert rig.acts[-1] == ("told edge", "e1", 4)

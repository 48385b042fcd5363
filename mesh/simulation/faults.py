"""Chooses faults of a simulated mesh and their times by seed; each fault lasts at least half a period."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mesh.simulation.sim_mesh import SimMesh

DELAYS_S = (0.02, 0.05, 0.2)


@dataclass(frozen=True, slots=True)
class FaultEvent:
    """A fault, or its mending: ``act`` changes the simulated mesh, and the report calls the change ``what``."""

    what: str
    act: Callable[[], None]


class Faults:
    """Makes random faults of a simulated mesh, each together with its mending."""

    def __init__(self, mesh: SimMesh, kinds: tuple[str, ...], chance: random.Random) -> None:
        self._mesh = mesh
        self._chance = chance
        self._kinds = [kind for kind in kinds if kind != "broker" or mesh.brokers]
        self._deck: list[str] = []

    def schedule(self, duration_s: float, period_s: float) -> Iterator[tuple[float, bool]]:
        """Yield in turn the times of a fault (True) and of its mending (False), in virtual seconds from the start."""
        start = 0.0
        while self._kinds and start + period_s <= duration_s:
            yield start + self._chance.uniform(period_s / 4, period_s * 3 / 8), True
            yield start + period_s * 7 / 8, False
            start += period_s

    def make(self) -> tuple[FaultEvent, FaultEvent]:
        """Return a fault and its mending. Each of the chosen kinds occurs once before any kind occurs again."""
        if not self._deck:
            self._deck = self._chance.sample(self._kinds, len(self._kinds))
        match self._deck.pop():
            case "cut":
                return self._cut(is_silent=False)
            case "silence":
                return self._cut(is_silent=True)
            case "delay":
                return self._delay()
            case "broker":
                return self._broker()
            case _:
                return self._crash()

    def _trunk(self) -> tuple[str, str]:
        one, other = self._chance.choice(sorted(map(sorted, self._mesh.trunks)))
        return one, other

    def _cut(self, *, is_silent: bool) -> tuple[FaultEvent, FaultEvent]:
        mesh, (one, other) = self._mesh, self._trunk()
        pipe = mesh.trunks[frozenset({one, other})]
        dialer, to = (node.router_id for node, _ in pipe.ends)

        def cut() -> None:
            mesh.cut(pipe, silently=is_silent)

        def mend() -> None:
            mesh.cut(pipe)  # A silent cut that no router has noticed is told to both routers before they connect anew.
            mesh.link(dialer, to)

        return FaultEvent(f"{'silence' if is_silent else 'cut'} {one} {other}", cut), FaultEvent(
            f"mend {one} {other}", mend
        )

    def _delay(self) -> tuple[FaultEvent, FaultEvent]:
        (one, other), delay_s = self._trunk(), self._chance.choice(DELAYS_S)
        pipe = self._mesh.trunks[frozenset({one, other})]

        def set_delay(delay_s: float) -> None:
            pipe.delay_s = delay_s

        slow = FaultEvent(f"delay {one} {other} {delay_s * 1000:g} ms", lambda: set_delay(delay_s))
        return slow, FaultEvent(f"no delay {one} {other}", lambda: set_delay(self._mesh.delay_s))

    def _crash(self) -> tuple[FaultEvent, FaultEvent]:
        mesh, name = self._mesh, self._chance.choice(sorted(self._mesh.routers))
        edges = mesh.edges_of(name)

        def crash() -> None:
            for edge in edges:
                mesh.trunks.pop(frozenset({edge.dialer, edge.to}))
            mesh.kill(name)

        def restart() -> None:
            mesh.start(name)
            for edge in edges:
                mesh.link(edge.dialer, edge.to)

        return FaultEvent(f"crash {name}", crash), FaultEvent(f"restart {name}", restart)

    def _broker(self) -> tuple[FaultEvent, FaultEvent]:
        mesh, name = self._mesh, self._chance.choice(sorted(self._mesh.brokers))
        crash = FaultEvent(f"crash broker {name}", lambda: mesh.kill_broker(name))
        return crash, FaultEvent(f"restart broker {name}", lambda: mesh.start_broker(name))

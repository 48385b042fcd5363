"""One simulation from start to end: converge, attach clients, inject and mend faults under traffic, and judge."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from addressing.topology.model import Topology
from mesh.client.journal import OUTCOMES, UNKNOWN
from mesh.simulation.convergence import WatchedMesh
from mesh.simulation.faults import FaultEvent, Faults
from mesh.simulation.plan import plan_traffic
from mesh.simulation.traffic import SimFlow
from mesh.terminal.counts import number_of

START_LIMIT_S = 30.0
ATTACH_S = 1.0
SETTLE_LIMIT_S = 40.0
"""Virtual time after the end of traffic in which messages may still get outcomes and arrive.

A detached subscription, a link route and a delivery without a path may each take 10 s.
"""


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The request of `amqpmesh simulate`. Times are in virtual seconds; ``period_s`` is the time for one fault."""

    topology: Topology
    seed: int
    duration_s: float
    period_s: float
    faults: tuple[str, ...]
    addresses: int
    consumers: int
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """One change of the mesh, a fault or its mending, and how the routers' link state converged.

    ``converged_ms``: virtual time until the last router's graph of the mesh changed; None if no graph changed.
    """

    at_s: float
    what: str
    converged_ms: float | None
    routers: int
    wrong: tuple[str, ...]

    @property
    def reason(self) -> str:
        if not self.wrong:
            return ""
        verb = "has" if len(self.wrong) == 1 else "have"
        return f"{number_of(len(self.wrong), 'router')} {verb} a wrong view of the mesh, such as {self.wrong[0]}"

    @property
    def verdict(self) -> str:
        if self.wrong:
            return f"failed: {self.reason}"
        return "no path changed" if self.converged_ms is None else f"converged in {self.converged_ms:g} ms"

    def row(self) -> list[object]:
        took = None if self.converged_ms is None else f"{self.converged_ms:g} ms"
        verdict = self.verdict if self.wrong else "ok"
        return [f"{self.at_s:.3f}", self.what, took, self.routers, verdict]


@dataclass(frozen=True, slots=True)
class FlowReport:
    address: str
    type: str
    attempted: int
    accepted: int
    released: int
    rejected: int
    modified: int
    unknown: int
    unanswered: int
    received: int
    redelivered: int
    lost: int
    duplicates: int

    @property
    def reason(self) -> str:
        """Return why the traffic counts as failed: loss, unmarked duplicate, no outcome, no arrival; else empty."""
        if self.lost:
            return f"{self.lost} messages were accepted and never arrived"
        if self.duplicates:
            return f"{self.duplicates} messages arrived again without being marked as redelivered"
        if self.unanswered:
            return f"{self.unanswered} messages have no outcome"
        return "" if self.received or not self.attempted else "nothing arrived"

    def row(self) -> list[object]:
        figures = [getattr(self, name) for name in self.__slots__ if name != "unanswered"]
        return [*figures, f"failed: {self.reason}" if self.reason else "ok"]


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """The result of a simulation: its changes and the fate of its messages.

    ``left_out``: address patterns of the topology on which there was no traffic. The CPU times are seconds of this
    machine, each of one router for one change.
    """

    changes: tuple[ChangeReport, ...]
    flows: tuple[FlowReport, ...]
    left_out: tuple[str, ...]
    learning_cpu_s: tuple[float, ...]
    paths_cpu_s: tuple[float, ...]

    def to_map(self) -> dict[str, object]:
        """Return the part of the report that the seed determines: no CPU times of this machine."""
        return {
            "changes": [asdict(change) for change in self.changes],
            "flows": [asdict(flow) for flow in self.flows],
            "left_out": list(self.left_out),
        }

    @property
    def ok(self) -> bool:
        return not any(change.reason for change in self.changes) and not any(flow.reason for flow in self.flows)


class Simulation:
    """One simulation, run by ``run``; stores of its brokers are in ``folder``.

    ``tell(passed, report)`` is called after each change with the report of the change, and with None as time passes;
    ``passed`` is the virtual time in seconds since the start.
    """

    def __init__(
        self, order: SimulationRequest, folder: Path, tell: Callable[[float, ChangeReport | None], None]
    ) -> None:
        self._order = order
        self._tell = tell
        self._chance = random.Random(order.seed)
        self.mesh = WatchedMesh(order.topology, folder)
        self._began = self.mesh.now
        self._changes: list[ChangeReport] = []
        self._learning: list[float] = []
        self._paths: list[float] = []
        plans, self._left_out = plan_traffic(order.topology, order.addresses, order.seed)
        self._flows = [SimFlow(self.mesh, plan, order.rate_per_s, order.consumers, self._chance) for plan in plans]

    def run(self) -> SimulationReport:
        try:
            self._start()
            self._fail()
            self._settle()
            return self._report()
        finally:
            gc.unfreeze()
            self.mesh.close()

    @property
    def _passed(self) -> float:
        return self.mesh.now - self._began

    def _start(self) -> None:
        mesh = self.mesh
        while mesh.wrong_pictures() and self._passed < START_LIMIT_S:
            mesh.run(0.5)
            self._tell(self._passed, None)
        # All present objects stay, and are exempt from garbage collection, which would take a fifth of the CPU time.
        gc.freeze()
        self._note("start", self._began)
        for flow in self._flows:
            flow.start()
        mesh.run(ATTACH_S)
        for flow in self._flows:
            flow.is_open = True

    def _fail(self) -> None:
        order, start, mending = self._order, self.mesh.now, None
        faults = Faults(self.mesh, order.faults, self._chance)
        times = list(faults.schedule(order.duration_s, order.period_s))
        for (at, is_fault), until in zip(times, [*(at for at, _ in times[1:]), order.duration_s], strict=False):
            self._run_to(start + at)
            if is_fault:
                event, mending = faults.make()
            elif mending is not None:
                event, mending = mending, None
            self._watch(event, start + until)
        self._run_to(start + order.duration_s)

    def _run_to(self, when: float) -> None:
        while self.mesh.now < when:
            self.mesh.run(min(1.0, when - self.mesh.now))
            self._tell(self._passed, None)

    def _watch(self, event: FaultEvent, until: float) -> None:
        """Carry out a fault or its mending, run until ``until``, when the next one is due, and report how the mesh
        converged meanwhile.
        """
        at = self.mesh.now
        self.mesh.forget_changes()
        event.act()
        self._run_to(until)
        self._note(event.what, at)

    def _note(self, what: str, at: float) -> None:
        mesh = self.mesh
        seen = mesh.convergence(at)
        took_ms = None if seen.took_s is None else round(seen.took_s * 1000, 1)
        change = ChangeReport(round(at - self._began, 3), what, took_ms, len(mesh.changed_at), seen.wrong)
        if what != "start":
            self._learning += mesh.cpu_s.values()
            self._paths += mesh.path_cpu_s() if mesh.changed_at else []
        self._changes.append(change)
        self._tell(self._passed, change)

    def _settle(self) -> None:
        for flow in self._flows:
            flow.is_open = False
        end = self.mesh.now + SETTLE_LIMIT_S
        while not all(flow.is_over for flow in self._flows) and self.mesh.now < end:
            self._run_to(self.mesh.now + 0.5)

    def _report(self) -> SimulationReport:
        return SimulationReport(
            tuple(self._changes),
            tuple(map(report_flow, self._flows)),
            tuple(self._left_out),
            tuple(self._learning),
            tuple(self._paths),
        )


def report_flow(flow: SimFlow) -> FlowReport:
    journal = flow.journal
    told = Counter(journal.outcome(message) for message in range(len(journal.due)))
    unanswered = journal.unanswered()
    return FlowReport(
        address=flow.plan.address,
        type=str(flow.plan.kind),
        attempted=len(journal.due),
        **{name: told[name] for name in OUTCOMES if name != UNKNOWN},
        unknown=told[UNKNOWN] - unanswered,
        unanswered=unanswered,
        received=len(journal.arrivals),
        redelivered=flow.redelivered,
        lost=flow.lost(),
        duplicates=sum(1 for _ in journal.duplicated()),
    )

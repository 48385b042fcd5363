"""Runs the plan of a drill: traffic, faults at their times, healing, and a wait for messages in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mesh.client.errors import MeshError
from mesh.client.server import Server
from mesh.deploy.polling import POLL_S, wait_until
from mesh.drills.faults import Injection, injection_of
from mesh.drills.leases import Leases
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.plan import DrillPlan, PlannedFault
from mesh.drills.traffic import DrillTraffic

FIRST_MESSAGE_S = 30.0
SETTLE_S = 15.0


@dataclass(slots=True)
class FaultRun:
    """A planned fault and its course in a rehearsal; times are of the monotonic clock, in seconds."""

    planned: PlannedFault
    injection: Injection
    at: float = 0.0
    wall_at: float = 0.0
    """Time of the injection in seconds since 1970."""
    healed_at: float | None = None
    error: str = ""
    """The reason why the fault could not be injected, or empty."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class RehearsalRecord:
    """The record of a rehearsal; times are of the monotonic clock in seconds, and 0 for a phase that was not
    reached.
    """

    plan: DrillPlan
    traffics: Sequence[DrillTraffic]
    began_at: float = 0.0
    wall_began_at: float = 0.0
    cooldown_at: float = 0.0
    ended_at: float = 0.0
    """Time at which producers stopped: no message was due later."""
    injected: list[FaultRun] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    ended_early: str = ""
    """The reason why no fault was injected after the baseline, or empty."""
    was_interrupted: bool = False


class RehearsalObserver(Protocol):
    """The interface of an object that shows the progress of a rehearsal."""

    def say(self, text: str) -> None: ...

    def watch(self, record: RehearsalRecord) -> None: ...


class Rehearsal:
    """Runs the plan of a drill once. The event ``stop`` ends the run early; faults in force are healed nevertheless."""

    def __init__(
        self,
        plan: DrillPlan,
        servers: Mapping[str, Server],
        stage: MeshCopy | None,
        leases: Leases,
        watch: RehearsalObserver,
        stop: asyncio.Event,
    ) -> None:
        self.record = RehearsalRecord(plan, [DrillTraffic(flow, servers) for flow in plan.flows])
        self._plan = plan
        self._stage = stage
        self._leases = leases
        self._watch = watch
        self._stop = stop

    async def run(self, may_go_on: Callable[[RehearsalRecord], str]) -> RehearsalRecord:
        """Run the plan of the drill, and return the record of the run.

        After the baseline, ``may_go_on`` returns the reason why no fault may be injected, or an empty text.
        """
        record = self.record
        self._watch.watch(record)
        try:
            await self._start()
            await self._until(record.began_at + self._plan.baseline_s)
            if reason := may_go_on(record):
                record.ended_early = reason
                self._say(reason)
            else:
                await self._break_and_heal()
            await self._until(record.cooldown_at + self._plan.cooldown_s if record.injected else 0.0)
            await self._finish()
        finally:
            await asyncio.gather(*(traffic.stop() for traffic in record.traffics))
        record.was_interrupted = self._stop.is_set()
        return record

    async def _start(self) -> None:
        self._say(f"traffic on {', '.join(traffic.flow.address for traffic in self.record.traffics)}")
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                await asyncio.gather(*(traffic.start() for traffic in self.record.traffics))
                await wait_until(self._has_arrivals)
        except TimeoutError:
            for traffic in self.record.traffics:
                if not traffic.journal.reaches_all():
                    why = f": {traffic.refusal}" if traffic.refusal else ""
                    address = traffic.flow.address
                    self._say(f"not every receiver of {address} got a message within {FIRST_MESSAGE_S:g} s{why}")
        self.record.began_at, self.record.wall_began_at = time.monotonic(), time.time()
        self.record.cooldown_at = self.record.began_at
        self._say(f"baseline, {self._plan.baseline_s:g} s")

    async def _has_arrivals(self) -> bool:
        return all(traffic.journal.reaches_all() for traffic in self.record.traffics)

    async def _break_and_heal(self) -> None:
        began = time.monotonic()
        self.record.injected = [
            FaultRun(planned, injection_of(planned.fault, self._stage, self._leases)) for planned in self._plan.faults
        ]
        befores = [None, *self.record.injected]
        await asyncio.gather(
            *(
                self._inject(injected, before, began)
                for injected, before in zip(self.record.injected, befores, strict=False)
            )
        )
        await self._until(began + self._plan.method_s)
        self.record.cooldown_at = time.monotonic()
        self._say(f"cooldown, {self._plan.cooldown_s:g} s")

    async def _inject(self, injected: FaultRun, before: FaultRun | None, began: float) -> None:
        planned, injection = injected.planned, injected.injection
        await self._wait_turn(planned, before, began)
        if not self._stop.is_set():
            await injection.prepare()
        if self._stop.is_set():
            injected.is_over.set()
            return
        injected.at, injected.wall_at = time.monotonic(), time.time()
        self._say(f"fault {planned.id}: {planned.label}")
        try:
            await injection.apply()
            await self._until(injected.at + planned.lasts_s)
        except (MeshError, OSError) as error:
            injected.error = str(error)
            self._say(f"fault {planned.id}: not injected: {error}")
        finally:
            await self._heal(injected)

    async def _wait_turn(self, planned: PlannedFault, before: FaultRun | None, began: float) -> None:
        if planned.after_s is not None and before is not None:
            await before.is_over.wait()
            await self._until((before.healed_at or time.monotonic()) + planned.after_s)
        else:
            await self._until(began + planned.at_s)

    async def _heal(self, injected: FaultRun) -> None:
        try:
            await injected.injection.heal()
        except (MeshError, OSError) as error:
            injected.injection.stays(f"not healed: {error}")
        injected.healed_at = time.monotonic()
        injected.is_over.set()
        self._say(f"fault {injected.planned.id}: {'healed' if injected.injection.was_healed else 'not healed'}")

    async def _finish(self) -> None:
        for traffic in self.record.traffics:
            await traffic.stop_sending()
        self.record.ended_at = time.monotonic()
        self._say("waiting for messages in flight")
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline and not self._stop.is_set():
            if all(_is_over(traffic) for traffic in self.record.traffics):
                return
            await asyncio.sleep(2 * POLL_S)

    async def _until(self, at: float) -> None:
        """Wait until the monotonic time ``at`` in s, or until the event ``stop`` of the rehearsal is set."""
        try:
            async with asyncio.timeout(max(0.0, at - time.monotonic())):
                await self._stop.wait()
        except TimeoutError:
            return

    def _say(self, text: str) -> None:
        since = time.monotonic() - self.record.began_at if self.record.began_at else 0.0
        line = f"{since:6.1f} s  {text}"
        self.record.log.append(line)
        self._watch.say(line)


def _is_over(traffic: DrillTraffic) -> bool:
    """Tell whether no further message is expected at the receivers of ``traffic``, whose senders have stopped.

    An anycast or multicast delivery is settled by its consumers, so nothing arrives after the sender has all outcomes;
    for stored or pre-settled messages, the journal must be complete.
    """
    flow, journal = traffic.flow, traffic.journal
    is_from_consumers = not flow.type.is_stored and not flow.load.presettled
    return not journal.unanswered() if is_from_consumers else journal.is_complete()

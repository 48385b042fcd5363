"""Runs `bench attaches`: measures what opening connections and attaching links costs, and how long others wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesh.bench.bystander import AFTERMATH_S, RATE_PER_S, Bystander
from mesh.bench.idle_links import SPARE_FILES, go_on
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.meter import NetCpu
from mesh.bench.open_files import make_room
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.terminal.output import Output

MODE = "receivers"
BESIDE_MODE = f"{RATE_PER_S:.0f}/s"
# How long the bystander is alone, before the attaches: 100 messages.
ALONE_S = 1.0


@dataclass(frozen=True, slots=True)
class AttachesBenchRequest:
    """The request for a measurement of attaches; ``links`` counts the links of each connection.

    ``crowd``: the number of connections that attach links at once beside the bystander. ``is_shared``: whether all
    links are on one address.
    """

    connections: int
    links: int
    crowd: int
    per_session: int
    is_shared: bool
    repeat: int
    stall_s: float

    @property
    def addresses(self) -> str:
        return "one address" if self.is_shared else "an address each"

    def opened_name(self, line: str) -> str:
        return f"{line}, {self.connections:,} connections opened with a link"

    def attached_name(self, line: str) -> str:
        return f"{line}, {self.connections:,} connections attach {self.links:,} links each, {self.addresses}"

    def beside_name(self, line: str) -> str:
        return f"{line}, others while {self.crowd:,} connections attach {self.links:,} links each, {self.addresses}"


def measure_ours(order: AttachesBenchRequest, out: Output) -> Iterator[BenchRow]:
    most = max(order.connections, order.crowd)
    make_room(most + SPARE_FILES)
    plan = LoopbackPlan(1, max_connections=most + SPARE_FILES, max_links=most * (order.links + 1) + SPARE_FILES)
    with running_line(plan, out) as target:
        yield from measure(target, plan.name, order, out)


def measure(target: BenchTarget, line: str, order: AttachesBenchRequest, out: Output) -> Iterator[BenchRow]:
    out.say(order.attached_name(line))
    runs = [attach(target, order) for _ in range(order.repeat)]
    yield BenchRow(order.opened_name(line), MODE, merged([opened for opened, _ in runs]))
    yield BenchRow(order.attached_name(line), MODE, merged([attached for _, attached in runs]))
    out.say(order.beside_name(line))
    besides = [beside(target, order) for _ in range(order.repeat)]
    yield row_beside(f"{line}, others alone", [alone for alone, _ in besides])
    yield row_beside(order.beside_name(line), [crowded for _, crowded in besides])


def attach(target: BenchTarget, order: AttachesBenchRequest) -> tuple[Figures, Figures]:
    """Return the figures of opening the connections, and of attaching the links."""
    with BenchProcesses() as sides:
        crowd = sides.start("attach_crowd", plan_of(target, order, order.connections))
        crowd.step()
        opening = NetCpu(target.meter)
        opened = go_on(crowd)
        opening_us = opening.us_each(order.connections)
        attaching = NetCpu(target.meter)
        attached = go_on(crowd)
        links = order.connections * order.links
        attaching_us = attaching.us_each(links)
        go_on(crowd)
        crowd.end()
    return (
        {"cpu_us_each": opening_us, "connections_per_s": order.connections / seconds_of(opened)},
        {"cpu_us_each": attaching_us, "attaches_per_s": links / seconds_of(attached)},
    )


def beside(target: BenchTarget, order: AttachesBenchRequest) -> tuple[Figures, Figures]:
    """Return the percentiles of a bystander's latencies alone, and while a crowd attaches its links."""
    with BenchProcesses() as sides:
        crowd = sides.start("attach_crowd", plan_of(target, order, order.crowd))
        crowd.step()
        go_on(crowd)
        if target.meter is not None:
            target.meter.wait_idle()
        bystander = Bystander(sides, target, order.stall_s)
        began_at = time.monotonic()
        time.sleep(ALONE_S)
        attached = go_on(crowd)
        time.sleep(AFTERMATH_S)
        waits = bystander.stop()
        go_on(crowd)
        crowd.end()
    alone = waits.during(began_at, attached["began_at"])
    crowded = waits.during(attached["began_at"], attached["ended_at"] + AFTERMATH_S)
    return alone, {**crowded, "lost": waits.lost}


def plan_of(target: BenchTarget, order: AttachesBenchRequest, connections: int) -> dict[str, Any]:
    return {
        "place": target.receiving_place.to_map(),
        "addresses": target.addresses.anycast if order.is_shared else target.addresses.more("%d"),
        "connections": connections,
        "links": order.links,
        "per_session": order.per_session,
        "stall_s": order.stall_s,
    }


def seconds_of(step: Mapping[str, Any]) -> float:
    return max(float(step["ended_at"] - step["began_at"]), 1e-9)


def row_beside(work: str, runs: Sequence[Figures]) -> BenchRow:
    figures = merged(runs)
    lost = figures.get("lost")
    return BenchRow(work, BESIDE_MODE, figures, (f"{work}: {lost} messages lost",) if lost else ())

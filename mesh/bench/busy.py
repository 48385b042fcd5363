"""Runs `bench busy`: measures very many connections that together send messages at an even rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mesh.bench.exchange import plan_of, wrongs_of
from mesh.bench.forward import UNSETTLED
from mesh.bench.idle_links import SPARE_FILES, go_on
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.open_files import make_room
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.bench.units import size_name
from mesh.terminal.output import Output

WINDOW = 1000


@dataclass(frozen=True, slots=True)
class BusyBenchRequest:
    """The request for a measurement of busy connections; ``rate_per_s`` is the rate of all connections together."""

    connections: int
    consumers: int
    rate_per_s: float
    seconds: float
    body_bytes: int
    repeat: int
    stall_s: float

    def name(self, line: str) -> str:
        return (
            f"{line}, {self.connections:,} connections send in turn to {self.consumers:,} consumers, "
            f"{size_name(self.body_bytes)}"
        )

    @property
    def mode(self) -> str:
        return f"{UNSETTLED}, {self.rate_per_s:,.0f}/s"


@dataclass(frozen=True, slots=True)
class BusyBenchRun:
    figures: Figures
    wrongs: Mapping[str, int]


def measure_ours(order: BusyBenchRequest, out: Output) -> Iterator[BenchRow]:
    files = order.connections + order.consumers + SPARE_FILES
    make_room(files)
    plan = LoopbackPlan(1, max_connections=files, max_links=files)
    with running_line(plan, out) as target:
        yield measure(target, plan.name, order, out)


def measure(target: BenchTarget, line: str, order: BusyBenchRequest, out: Output) -> BenchRow:
    make_room(order.connections + order.consumers + SPARE_FILES)
    work = order.name(line)
    out.say(f"{work}, {order.mode}")
    runs = [measure_once(target, order) for _ in range(order.repeat)]
    return BenchRow(work, order.mode, merged([run.figures for run in runs]), tuple(sentences(work, runs)))


def measure_once(target: BenchTarget, order: BusyBenchRequest) -> BusyBenchRun:
    count = max(int(order.rate_per_s * order.seconds), 1)
    plan = plan_of(count, order.body_bytes, UNSETTLED, window=WINDOW, is_durable=False, stall_s=order.stall_s) | {
        "place": target.sending_place.to_map(),
        "addresses": [target.addresses.anycast],
        "connections": order.connections,
        "consumers": order.consumers,
        "rate_per_s": order.rate_per_s,
    }
    with BenchProcesses() as sides:
        swarm = sides.start("swarm", plan)
        swarm.step()
        if target.meter is not None:
            target.meter.wait_idle()
        before_s = sum(target.meter.cpu_s()) if target.meter is not None else 0.0
        report = go_on(swarm)
        used_s = sum(target.meter.cpu_s()) - before_s if target.meter is not None else None
        go_on(swarm)
        swarm.end()
    seconds = report["ended_at"] - report["started_at"]
    figures = {
        "cpu_us_per_message": used_s * 1e6 / count if used_s is not None else None,
        "messages_per_s": report["received"] / seconds if seconds > 0 else None,
        **report["percentiles"],
        "lost": report["lost"],
        "generator_us_each": report["cpu_s"] * 1e6 / count,
    }
    # The order of messages from several connections is not defined.
    return BusyBenchRun(figures, wrongs_of(report, {**report, "reordered": 0}))


def sentences(work: str, runs: Sequence[BusyBenchRun]) -> Iterator[str]:
    if lost := sum(run.figures["lost"] or 0 for run in runs):
        yield f"{work}: {lost:.0f} messages did not arrive"
    for what in sorted({what for run in runs for what in run.wrongs}):
        yield f"{work}: {sum(run.wrongs.get(what, 0) for run in runs)} messages {what}"

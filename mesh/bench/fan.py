"""Runs `bench fan`: measures one sender to very many consumers of an anycast address, and how even their shares are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mesh.bench.exchange import dismiss, exchange, plan_of, wrongs_of
from mesh.bench.forward import UNSETTLED
from mesh.bench.idle_links import SPARE_FILES
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.open_files import make_room
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.bench.units import size_name
from mesh.terminal.output import Output

MODE = UNSETTLED
WARM_UP_MESSAGES = 20_000


@dataclass(frozen=True, slots=True)
class FanBenchRequest:
    """The request for a measurement of many consumers; each number of ``connections`` gives a row."""

    consumers: int
    connections: Sequence[int]
    messages: int
    body_bytes: int
    window: int
    repeat: int
    stall_s: float

    def name(self, line: str, connections: int) -> str:
        on = f"{connections:,} connection{'s' if connections > 1 else ''}"
        return f"{line}, 1 to {self.consumers:,} consumers on {on}, {size_name(self.body_bytes)}"


@dataclass(frozen=True, slots=True)
class FanBenchRun:
    figures: Figures
    wrongs: Mapping[str, int]


def measure_ours(order: FanBenchRequest, out: Output) -> Iterator[BenchRow]:
    most = max(order.connections) + SPARE_FILES
    make_room(most)
    plan = LoopbackPlan(1, max_connections=most, max_links=order.consumers + SPARE_FILES)
    with running_line(plan, out) as target:
        yield from measure(target, plan.name, order, out)


def measure(target: BenchTarget, line: str, order: FanBenchRequest, out: Output) -> Iterator[BenchRow]:
    make_room(max(order.connections) + SPARE_FILES)
    for connections in order.connections:
        work = order.name(line, connections)
        out.say(work)
        measure_once(target, order, connections, min(order.messages, WARM_UP_MESSAGES))
        runs = [measure_once(target, order, connections, order.messages) for _ in range(order.repeat)]
        yield BenchRow(work, MODE, merged([run.figures for run in runs]), tuple(sentences(work, runs)))


def measure_once(target: BenchTarget, order: FanBenchRequest, connections: int, messages: int) -> FanBenchRun:
    plan = plan_of(messages, order.body_bytes, MODE, window=order.window, is_durable=False, stall_s=order.stall_s) | {
        "addresses": [target.addresses.anycast],
        "consumers": order.consumers,
        "connections": connections,
    }
    with BenchProcesses() as sides:
        consumers = sides.start("share", {**plan, "place": target.receiving_place.to_map()})
        consumers.step()
        consumers.go_on()
        producer = sides.start("produce", {**plan, "place": target.sending_place.to_map()})
        producer.step()
        if target.meter is not None:
            target.meter.wait_idle()
        before_s = sum(target.meter.cpu_s()) if target.meter is not None else 0.0
        sent, received = exchange(producer, consumers)
        used_s = sum(target.meter.cpu_s()) - before_s if target.meter is not None else None
        dismiss(producer, consumers)
    seconds = max(sent["ended_at"], received["ended_at"]) - sent["started_at"]
    figures = {
        "cpu_us_per_message": used_s * 1e6 / messages if used_s is not None else None,
        "messages_per_s": received["received"] / seconds if seconds > 0 else None,
        "shares_differ_percent": difference_percent(received["shares"]),
        "idle_consumers": sum(each == 0 for each in received["shares"]) or None,
        "lost": received["lost"],
        "sender_us_per_message": sent["cpu_s"] * 1e6 / messages,
        "receiver_us_per_message": received["cpu_s"] * 1e6 / messages,
    }
    return FanBenchRun(figures, wrongs_of(sent, received))


def difference_percent(shares: Sequence[int]) -> float | None:
    """Return by how many percent the largest share is above the smallest; None if some share is 0."""
    return (max(shares) / min(shares) - 1) * 100 if min(shares) else None


def sentences(work: str, runs: Sequence[FanBenchRun]) -> Iterator[str]:
    if lost := sum(run.figures["lost"] or 0 for run in runs):
        yield f"{work}: {lost:.0f} messages did not arrive"
    for what in sorted({what for run in runs for what in run.wrongs}):
        yield f"{work}: {sum(run.wrongs.get(what, 0) for run in runs)} messages {what}"

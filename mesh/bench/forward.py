"""Runs `bench forward`: measures the cost of a message at a router, and the throughput."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from mesh.bench.dial import listen
from mesh.bench.exchange import dismiss, exchange, plan_of, wrongs_of
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.processes import BenchProcesses
from mesh.bench.rows import BenchRow
from mesh.bench.sides import EACH, PRESETTLED
from mesh.bench.target import BenchTarget
from mesh.bench.units import size_name
from mesh.terminal.figures import median
from mesh.terminal.output import Output

UNSETTLED = "unsettled"
MODES = (UNSETTLED, PRESETTLED, EACH)
WARM_UP_MESSAGES = 20_000
ALONE = "generator alone"


@dataclass(frozen=True, slots=True)
class ForwardLoad:
    """One kind of load on routers.

    ``consumers``: the number of consumers that each receive every message, by multicast; 0 for one consumer of an
    anycast address. ``routers``: the number of routers in line.
    """

    mode: str = UNSETTLED
    body_bytes: int = 100
    routers: int = 1
    consumers: int = 0

    @property
    def copies(self) -> int:
        return max(self.consumers, 1)

    def name(self, line: str) -> str:
        fan = f"multicast to {self.consumers}" if self.consumers else "1 to 1"
        each = ", per router" if self.routers > 1 else ""
        each += ", per copy" if self.consumers else ""
        return f"{line}, {fan}, {size_name(self.body_bytes)}{each}"


STANDARD = (
    ForwardLoad(),
    ForwardLoad(PRESETTLED),
    ForwardLoad(EACH),
    ForwardLoad(body_bytes=1024),
    ForwardLoad(body_bytes=10240),
    ForwardLoad(consumers=10),
    ForwardLoad(PRESETTLED, consumers=10),
    ForwardLoad(routers=2),
    ForwardLoad(routers=3),
)


@dataclass(frozen=True, slots=True)
class ForwardBenchRequest:
    """The request for a measurement of forwarding; with several consumers, ``messages`` counts copies."""

    messages: int
    window: int
    repeat: int
    is_tls: bool
    is_durable: bool
    stall_s: float
    has_records: bool = False


@dataclass(frozen=True, slots=True)
class ForwardBenchRun:
    """The result of one measurement; the CPU times of sender, receiver and router are in us per copy of a message."""

    cpu_us: float | None
    messages_per_s: float
    sender_us: float
    receiver_us: float
    lost: int
    wrongs: Mapping[str, int]


def measure_ours(works: Sequence[ForwardLoad], order: ForwardBenchRequest, out: Output) -> Iterator[BenchRow]:
    """Measure our own routers, started anew for each length of line, and then the load generator without a router."""
    for routers, some in groupby(sorted(works, key=lambda work: work.routers), key=lambda work: work.routers):
        plan = LoopbackPlan(routers, order.is_tls, has_records=order.has_records)
        with running_line(plan, out) as target:
            yield from measure(target, plan.name, list(some), order, out)
    yield measure_alone(order, out)


def measure(
    target: BenchTarget, line: str, works: Iterable[ForwardLoad], order: ForwardBenchRequest, out: Output
) -> Iterator[BenchRow]:
    for work in works:
        out.say(f"{work.name(line)}, {work.mode}")
        warm_up = replace(order, messages=min(order.messages, WARM_UP_MESSAGES))
        measure_once(target, work, warm_up)
        runs = [measure_once(target, work, order) for _ in range(order.repeat)]
        yield row_of(work.name(line), work.mode, runs)


def measure_once(target: BenchTarget, work: ForwardLoad, order: ForwardBenchRequest) -> ForwardBenchRun:
    plan = plan_for(work, order)
    plan["addresses"] = [target.addresses.multicast if work.consumers else target.addresses.anycast]
    with BenchProcesses() as sides:
        receiving = {**plan, "place": target.receiving_place.to_map(), "connections": work.copies}
        consumer = sides.start("consume", receiving)
        consumer.step()
        consumer.go_on()
        producer = sides.start("produce", {**plan, "place": target.sending_place.to_map()})
        producer.step()
        before = target.meter.cpu_s() if target.meter is not None else []
        sent, received = exchange(producer, consumer)
        after = target.meter.cpu_s() if target.meter is not None else []
        used = [later - earlier for later, earlier in zip(after, before, strict=True)]
        dismiss(producer, consumer)
    cpu_us = target.per_router(used) * 1e6 / (plan["count"] * work.copies) if used else None
    return run_of(plan["count"] * work.copies, cpu_us, sent, received)


def measure_alone(order: ForwardBenchRequest, out: Output) -> BenchRow:
    """Measure the load generator alone, with its sender connected to its receiver.

    This is the generator's own cost, and the upper limit of any measurement.
    """
    out.say(ALONE)
    work = ForwardLoad()
    return row_of(
        f"{ALONE}, 1 to 1, {size_name(work.body_bytes)}", work.mode, [alone(work, order) for _ in range(order.repeat)]
    )


def alone(work: ForwardLoad, order: ForwardBenchRequest) -> ForwardBenchRun:
    plan = plan_for(work, order)
    with BenchProcesses() as sides, listen() as listening:
        consumer = sides.start("sink", {**plan, "listen_fd": listening.fileno()}, [listening.fileno()])
        consumer.step()
        consumer.go_on()
        port = listening.getsockname()[1]
        place = {"host": "127.0.0.1", "port": port}
        producer = sides.start("produce", {**plan, "addresses": ["sink"], "place": place})
        producer.step()
        consumer.step()
        consumer.go_on()
        sent, received = exchange(producer, consumer)
        dismiss(producer, consumer)
    return run_of(plan["count"], None, sent, received)


def plan_for(work: ForwardLoad, order: ForwardBenchRequest) -> dict[str, Any]:
    count = max(order.messages // work.copies, 1)
    return plan_of(
        count, work.body_bytes, work.mode, window=order.window, is_durable=order.is_durable, stall_s=order.stall_s
    )


def run_of(count: int, cpu_us: float | None, sent: Mapping[str, Any], received: Mapping[str, Any]) -> ForwardBenchRun:
    seconds = max(sent["ended_at"], received["ended_at"]) - sent["started_at"]
    return ForwardBenchRun(
        cpu_us,
        received["received"] / seconds if seconds > 0 else 0.0,
        sent["cpu_s"] * 1e6 / count,
        received["cpu_s"] * 1e6 / count,
        received["lost"],
        wrongs_of(sent, received),
    )


def row_of(work: str, mode: str, runs: Sequence[ForwardBenchRun]) -> BenchRow:
    cpu = [run.cpu_us for run in runs if run.cpu_us is not None]
    rates = [run.messages_per_s for run in runs]
    figures = {
        "cpu_us_per_message": median(cpu) if cpu else None,
        "cpu_us_spread": [min(cpu), max(cpu)] if len(cpu) > 1 else None,
        "messages_per_s": median(rates),
        "messages_per_s_spread": [min(rates), max(rates)] if len(rates) > 1 else None,
        "lost": sum(run.lost for run in runs),
        "sender_us_per_message": median([run.sender_us for run in runs]),
        "receiver_us_per_message": median([run.receiver_us for run in runs]),
    }
    return BenchRow(work, mode, figures, tuple(sentences(work, mode, runs)))


def sentences(work: str, mode: str, runs: Sequence[ForwardBenchRun]) -> Iterator[str]:
    """Yield a sentence for each kind of violation in the runs of one row, with the number of messages.

    Lost messages are a violation only if they were not pre-settled.
    """
    lost = sum(run.lost for run in runs)
    if lost and mode != PRESETTLED:
        hint = "; is the address a multicast or topic?" if "multicast" in work else ""
        yield f"{work}, {mode}: {lost} messages did not arrive{hint}"
    for what in sorted({what for run in runs for what in run.wrongs}):
        yield f"{work}, {mode}: {sum(run.wrongs.get(what, 0) for run in runs)} messages {what}"

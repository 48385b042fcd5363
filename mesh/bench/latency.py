"""Runs `bench latency`: measures the latency of a message, alone and beside large messages on the same connection."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from mesh.bench.dial import BenchServer, dial, listen
from mesh.bench.handshake import LinkPlan
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.processes import BenchProcess, BenchProcesses
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.bench.units import size_name
from mesh.terminal.figures import median
from mesh.terminal.output import Output

MODE = "unsettled"
FLOOR = "a relay of bytes, no router: the floor"
WARM_UP_S = 1.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class LatencyBenchRequest:
    rate_per_s: float
    seconds: float
    repeat: int
    body_bytes: int
    streams: int
    stream_bytes: int
    stream_rate: float
    """Limit of all streams of large messages together, in bytes a second; infinity for no limit."""
    is_tls: bool
    stall_s: float


def measure_ours(routers: Sequence[int], order: LatencyBenchRequest, out: Output) -> Iterator[BenchRow]:
    for streams in loads(order):
        work = work_name(FLOOR, order, streams)
        out.say(work)
        yield row_of(work, order, [floor(order, streams) for _ in range(order.repeat)])
    for count in routers:
        plan = LoopbackPlan(count, order.is_tls)
        with running_line(plan, out) as target:
            yield from measure(target, plan.name, order, out)


def measure_theirs(target: BenchTarget, line: str, order: LatencyBenchRequest, out: Output) -> Iterator[BenchRow]:
    """Yield the rows of a server that runs already; first check that the address of every stream can be attached, and
    raise the error if not.
    """
    check_streams(target, order.streams)
    yield from measure(target, line, order, out)


def check_streams(target: BenchTarget, streams: int) -> None:
    """Check that the address of each stream can be attached, by a receiver and by a sender, and close these links.
    Raise the errors of `dial`.
    """
    addresses = [target.addresses.more(stream) for stream in stream_names(streams)]
    if addresses:
        dial(target.receiving_place, [LinkPlan(address, True) for address in addresses]).close()
        dial(target.sending_place, [LinkPlan(address, False) for address in addresses]).close()


def measure(target: BenchTarget, line: str, order: LatencyBenchRequest, out: Output) -> Iterator[BenchRow]:
    for streams in loads(order):
        work = work_name(line, order, streams)
        out.say(work)
        measure_once(target, order, 0, WARM_UP_S)
        yield row_of(work, order, [measure_once(target, order, streams, order.seconds) for _ in range(order.repeat)])


def loads(order: LatencyBenchRequest) -> list[int]:
    """Return for each row its number of streams of large messages: 0, then ``order.streams`` if that is not 0."""
    return sorted({0, order.streams})


def work_name(line: str, order: LatencyBenchRequest, streams: int) -> str:
    beside = f" beside {streams} x {size_name(order.stream_bytes)}" if streams else ""
    rate = f" at {size_name(int(order.stream_rate))}/s" if streams and order.stream_rate < inf else ""
    return f"{line}, {size_name(order.body_bytes)}{beside}{rate}"


def measure_once(target: BenchTarget, order: LatencyBenchRequest, streams: int, seconds: float) -> dict[str, Any]:
    plan = plan_of(order, target.sending_place, seconds)
    plan["address"] = target.addresses.anycast
    plan["stream_addresses"] = [target.addresses.more(stream) for stream in stream_names(streams)]
    with BenchProcesses() as sides:
        pair = sides.start("pair", {**plan, "receiving_place": target.receiving_place.to_map()})
        return metered(pair, target, streams)


def metered(pair: BenchProcess, target: BenchTarget, streams: int) -> dict[str, Any]:
    meter = target.meter
    pair.step()
    if meter is None:
        return finish(pair)
    meter.forget_peaks()
    resident, before_s = meter.peak_bytes(), meter.cpu_s()
    report = finish(pair)
    if streams:
        growth = zip(meter.peak_bytes(), resident, strict=True)
        report["grown_bytes"] = max(peak - idle for peak, idle in growth)
    else:
        used_s = [later - earlier for later, earlier in zip(meter.cpu_s(), before_s, strict=True)]
        report["cpu_us"] = target.per_router(used_s) * 1e6 / report["sent"]
    return report


def stream_names(streams: int) -> list[str]:
    return [f"stream{number}" for number in range(streams)]


def floor(order: LatencyBenchRequest, streams: int) -> dict[str, Any]:
    """Measure messages of the same plan through a relay of bytes in place of a router: the least possible latency."""
    with BenchProcesses() as sides, listen() as front, listen() as back:
        relay = sides.start("forward_bytes", {"listen_fd": front.fileno(), "port": port_of(back)}, [front.fileno()])
        relay.step()
        relay.go_on()
        plan = plan_of(order, BenchServer(LOOPBACK, port_of(front)), order.seconds)
        plan |= {"address": "floor", "stream_addresses": stream_names(streams), "listen_fd": back.fileno()}
        pair = sides.start("pair", plan, [back.fileno()])
        pair.step()
        return finish(pair)


def port_of(listening: Any) -> int:
    port: int = listening.getsockname()[1]
    return port


def plan_of(order: LatencyBenchRequest, place: BenchServer, seconds: float) -> dict[str, Any]:
    return {
        "run": secrets.randbits(32),
        "sending_place": place.to_map(),
        "listen_fd": None,
        "rate_per_s": order.rate_per_s,
        "seconds": seconds,
        "body_bytes": order.body_bytes,
        "stream_bytes": order.stream_bytes,
        "bytes_per_s": order.stream_rate / max(order.streams, 1),
        "stall_s": order.stall_s,
    }


def finish(pair: BenchProcess) -> dict[str, Any]:
    pair.go_on()
    report = pair.step()
    pair.go_on()
    pair.end()
    return report


def row_of(work: str, order: LatencyBenchRequest, reports: Sequence[Mapping[str, Any]]) -> BenchRow:
    figures: dict[str, Any] = {
        "cpu_us_per_message": middle(reports, "cpu_us"),
        "messages_per_s": middle(reports, "messages_per_s"),
    }
    for key in ("p50_us", "p95_us", "p99_us", "max_us"):
        figures[key] = middle([report["percentiles"] for report in reports], key)
    figures["lost"] = sum(report["lost"] for report in reports)
    figures["stream_s"] = middle(reports, "stream_s")
    figures["grown_bytes"] = max((report.get("grown_bytes", 0) for report in reports), default=0) or None
    return BenchRow(work, f"{MODE}, {order.rate_per_s:,.0f}/s", figures, tuple(sentences(work, reports)))


def middle(reports: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [report[key] for report in reports if report.get(key) is not None]
    return median(values) if values else None


def sentences(work: str, reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for what in ("lost", "unsettled", "doubled", "reordered", "damaged"):
        total = sum(report[what] for report in reports)
        if total:
            yield f"{work}: {total} messages {what}"

"""Runs `bench handshakes`: measures TLS handshakes of clients, and how long others wait meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mesh.bench.attaches import ALONE_S, row_beside
from mesh.bench.bystander import Bystander
from mesh.bench.dial import BenchServer
from mesh.bench.idle_links import SPARE_FILES, go_on
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.terminal.output import Output

MODE = "TLS"


@dataclass(frozen=True, slots=True)
class HandshakesBenchRequest:
    """The request for a measurement of handshakes, ``at_once`` of them under way for ``seconds``."""

    at_once: int
    seconds: float
    repeat: int
    stall_s: float

    def name(self, line: str) -> str:
        return f"{line}, handshakes, {self.at_once:,} at once"


def measure_ours(order: HandshakesBenchRequest, out: Output) -> Iterator[BenchRow]:
    plan = LoopbackPlan(1, has_tls_listener=True, max_connections=order.at_once + SPARE_FILES)
    with running_line(plan, out) as target:
        assert target.tls_place is not None
        yield from measure(target, target.tls_place, plan.name, order, out)


def measure_theirs(
    target: BenchTarget, tls_port: int, line: str, order: HandshakesBenchRequest, out: Output
) -> Iterator[BenchRow]:
    yield from measure(target, replace(target.sending_place, port=tls_port), line, order, out)


def measure(
    target: BenchTarget, tls_place: BenchServer, line: str, order: HandshakesBenchRequest, out: Output
) -> Iterator[BenchRow]:
    work = order.name(line)
    out.say(work)
    runs = [measure_once(target, tls_place, order) for _ in range(order.repeat)]
    yield BenchRow(work, MODE, merged([shaken for shaken, _, _ in runs]))
    yield row_beside(f"{line}, others alone", [alone for _, alone, _ in runs])
    yield row_beside(f"{line}, others beside handshakes, {order.at_once:,} at once", [busy for _, _, busy in runs])


def measure_once(
    target: BenchTarget, tls_place: BenchServer, order: HandshakesBenchRequest
) -> tuple[Figures, Figures, Figures]:
    """Return the figures of the handshakes, and the percentiles of a bystander alone and meanwhile."""
    with BenchProcesses() as sides:
        plan = {"place": tls_place.to_map(), "at_once": order.at_once, "seconds": order.seconds}
        load = sides.start("shake_hands", plan)
        load.step()
        bystander = Bystander(sides, target, order.stall_s)
        alone_at = time.monotonic()
        time.sleep(ALONE_S)
        before_s = sum(target.meter.cpu_s()) if target.meter is not None else 0.0
        report = go_on(load)
        used_s = sum(target.meter.cpu_s()) - before_s if target.meter is not None else None
        waits = bystander.stop()
        load.end()
    count, seconds = max(report["handshakes"], 1), report["ended_at"] - report["began_at"]
    shaken = {
        "handshakes_per_s": report["handshakes"] / seconds,
        "cpu_us_each": used_s * 1e6 / count if used_s is not None else None,
        "generator_us_each": report["cpu_s"] * 1e6 / count,
    }
    beside = waits.during(report["began_at"], report["ended_at"])
    return shaken, waits.during(alone_at, report["began_at"]), {**beside, "lost": waits.lost}

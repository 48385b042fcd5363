"""Runs `bench cycles`: measures clients that connect, attach, send one message, wait for its outcome, and close."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesh.bench import performatives
from mesh.bench.cycle_loop import CycleFrames, run_cycles
from mesh.bench.dial import BenchServer, container_id, dial
from mesh.bench.exchange import dismiss, exchange, plan_of, wrongs_of
from mesh.bench.forward import UNSETTLED
from mesh.bench.handshake import LinkPlan
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.performatives import CLOSE_FRAME, HEADER, SEND_UNSETTLED
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.bench.worker import WorkerReport
from mesh.terminal.output import Output
from wire.sasl.frames import SaslInit, encode_frame

BODY_BYTES = 100
MODE = UNSETTLED
WARM_UP_CYCLES = 200
WINDOW = 1000


@dataclass(frozen=True, slots=True)
class CyclesBenchRequest:
    """The request for a measurement of cycles; ``at_once`` has the number of cycles under way at once of each row."""

    cycles: int
    at_once: Sequence[int]
    repeat: int
    stall_s: float


@dataclass(frozen=True, slots=True)
class CyclesBenchRun:
    figures: Figures
    wrongs: Mapping[str, int]


def measure_ours(order: CyclesBenchRequest, out: Output) -> Iterator[BenchRow]:
    plan = LoopbackPlan(1)
    with running_line(plan, out) as target:
        yield from measure(target, plan.name, order, out)


def measure(target: BenchTarget, line: str, order: CyclesBenchRequest, out: Output) -> Iterator[BenchRow]:
    for at_once in order.at_once:
        work = name_of(line, at_once)
        out.say(work)
        measure_once(target, min(order.cycles, WARM_UP_CYCLES), at_once, order.stall_s)
        runs = [measure_once(target, order.cycles, at_once, order.stall_s) for _ in range(order.repeat)]
        yield BenchRow(work, MODE, merged([run.figures for run in runs]), tuple(sentences(work, runs)))


def name_of(line: str, at_once: int) -> str:
    how = "one after the other" if at_once == 1 else f"{at_once} at once"
    return f"{line}, connect, attach, send one, close, {how}"


def measure_once(target: BenchTarget, cycles: int, at_once: int, stall_s: float) -> CyclesBenchRun:
    plan = plan_of(cycles, BODY_BYTES, MODE, window=WINDOW, is_durable=False, stall_s=stall_s)
    plan |= {"addresses": [target.addresses.anycast], "at_once": at_once}
    with BenchProcesses() as sides:
        consumer = sides.start("consume", {**plan, "place": target.receiving_place.to_map(), "connections": 1})
        consumer.step()
        consumer.go_on()
        clients = sides.start("cycle", {**plan, "place": target.sending_place.to_map()})
        clients.step()
        before_s = sum(target.meter.cpu_s()) if target.meter is not None else 0.0
        sent, received = exchange(clients, consumer)
        used_s = sum(target.meter.cpu_s()) - before_s if target.meter is not None else None
        dismiss(clients, consumer)
    seconds = sent["ended_at"] - sent["started_at"]
    figures = {
        "cpu_us_each": used_s * 1e6 / cycles if used_s is not None else None,
        "cycles_per_s": cycles / seconds if seconds > 0 else None,
        "lost": received["lost"],
        "generator_us_each": sent["cpu_s"] * 1e6 / cycles,
    }
    # Cycles at once overtake each other.
    return CyclesBenchRun(figures, wrongs_of(sent, {**received, "reordered": 0}))


def sentences(work: str, runs: Sequence[CyclesBenchRun]) -> Iterator[str]:
    if lost := sum(run.figures["lost"] or 0 for run in runs):
        yield f"{work}: {lost:.0f} messages did not arrive"
    for what in sorted({what for run in runs for what in run.wrongs}):
        yield f"{work}: {sum(run.wrongs.get(what, 0) for run in runs)} messages {what}"


def cycle(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    place, (address,) = BenchServer(**plan["place"]), plan["addresses"]
    # A first connection raises any error with a readable reason.
    probe = dial(place, [LinkPlan(address, False, SEND_UNSETTLED)])
    probe.close()
    frames = [frames_of(place, address, plan["run"], has_sasl=probe.has_sasl) for _ in range(plan["at_once"])]
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    places, began_at, ended_at = run_cycles(place.host, place.port, frames, plan["count"], plan["stall_s"])
    used_s = time.process_time() - before_s
    done, accepted = sum(each.done for each in places), sum(each.accepted for each in places)
    outcomes = {"accepted": accepted} | ({"not accepted": done - accepted} if accepted < done else {})
    yield WorkerReport(
        {
            "outcomes": outcomes,
            "unsettled": plan["count"] - done,
            "settled_twice": 0,
            "started_at": began_at,
            "ended_at": ended_at,
            "cpu_s": used_s,
        }
    )


def frames_of(place: BenchServer, address: str, run: int, *, has_sasl: bool) -> CycleFrames:
    name = container_id()
    hello = HEADER + performatives.open_frame(name, place.host) + performatives.begin_frame(0)
    hello += performatives.attach_frame(0, name, is_receiver=False, address=address, settle_mode=SEND_UNSETTLED)
    body = struct.pack(">IIQ", run, 0, 0) + b"x" * (BODY_BYTES - 16)
    payload = b"\x00\x53\x75\xa0" + bytes([BODY_BYTES]) + body
    return CycleFrames(encode_frame(sasl_init_of(place)) if has_sasl else b"", hello, payload, CLOSE_FRAME)


def sasl_init_of(place: BenchServer) -> SaslInit:
    """Return the login in one step: PLAIN for a user with a password, ANONYMOUS for nobody."""
    if place.user is None or place.password is None:
        return SaslInit("ANONYMOUS", None, place.host)
    return SaslInit("PLAIN", b"\0".join((b"", place.user.encode(), place.password.encode())), place.host)

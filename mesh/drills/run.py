"""What `amqpmesh drill` does: a copy of the mesh, a rehearsal on it, a report, and a folder that keeps it."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from addressing.topology import Topology
from mesh.drills.detection import read_notices
from mesh.drills.drill_file import DrillFile, read_drill
from mesh.drills.judgement import Circumstances, baseline_failure, make_report
from mesh.drills.leases import Leases
from mesh.drills.model import LinkFault
from mesh.drills.plan import Plan, make_plan
from mesh.drills.progress import Progress
from mesh.drills.rehearsal import Record, Rehearsal
from mesh.drills.report import Drawing, Report, Verdict
from mesh.drills.stage import Stage, stage
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed
from mesh.output import Output
from mesh.scratch import scratch_folder
from mesh.server import Server
from mesh.topology_file import load_topology
from mesh.version import read_version

RUNS = Path(".amqpmesh", "drills")
EXIT_CODES = {
    Verdict.PASS: ExitCode.OK,
    Verdict.FAIL: ExitCode.EXPECTATION_FAILED,
    Verdict.INVALID: ExitCode.DRILL_INVALID,
    Verdict.UNKNOWN: ExitCode.DRILL_INVALID,
}


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for."""

    file: Path
    topology_path: Path | None
    seed: int | None
    output: Path | None
    html: Path | None
    junit: Path | None


def run(order: Order, out: Output) -> int:
    file = read_drill(order.file)
    topology = load_topology(_topology_path(order, file))
    seed = file.drill.seed if order.seed is None else order.seed
    plan = make_plan(file, topology, seed)
    with scratch_folder("amqpmesh-drill-") as folder:
        report, logs = asyncio.run(_rehearse_on_copy(file, topology, plan, seed, folder, out))
        return keep_and_tell(report, order, logs, out)


def _topology_path(order: Order, file: DrillFile) -> Path | None:
    if order.topology_path is not None or file.drill.topology is None:
        return order.topology_path
    return file.path.parent / file.drill.topology


async def _rehearse_on_copy(
    file: DrillFile, topology: Topology, plan: Plan, seed: int, folder: Path, out: Output
) -> tuple[Report, Path]:
    links = {frozenset(planned.fault.link) for planned in plan.faults if isinstance(planned.fault, LinkFault)}
    began = time.monotonic()
    with Progress(out) as progress:
        stop = stopped_by_signals()
        async with AsyncExitStack() as stack:
            set_up: Stage = await stack.enter_async_context(stage(topology, links, folder, seed, progress.quiet(out)))
            record = await rehearse(plan, set_up.servers, set_up, set_up.leases, file, progress, stop)
            logs = [set_up.workdir.log_file(name) for name in topology.node_names]
            notices = read_notices(logs)
    circumstances = made(file, seed, time.monotonic() - began, drawing_of(topology), _digest(topology.file))
    return make_report(file.drill, record, notices, circumstances), logs[0].parent


async def rehearse(
    plan: Plan,
    servers: Mapping[str, Server],
    on: Stage | None,
    leases: Leases,
    file: DrillFile,
    progress: Progress,
    stop: asyncio.Event,
) -> Record:
    rehearsal = Rehearsal(plan, servers, on, leases, progress.say, stop)
    progress.watch(rehearsal.record)
    return await rehearsal.run(lambda record: baseline_failure(file.drill, record))


def stopped_by_signals() -> asyncio.Event:
    """Set by the first Ctrl-C, or when we are told to end: what is broken is healed, and the report written."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def made(file: DrillFile, seed: int, took_s: float, drawing: Drawing, topology_digest: str) -> Circumstances:
    return Circumstances(
        seed=seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(took_s, 1),
        command=" ".join(["amqpmesh", *sys.argv[1:]]),
        host=f"{platform.system()} {platform.release()}, {os.cpu_count()} cores",
        versions={
            "amqpmesh": read_version(),
            "python": platform.python_version(),
            "python-qpid-proton": version("python-qpid-proton"),
        },
        digests={"drill": file.digest, "topology": topology_digest},
        drawing=drawing,
        previous=previous_run(file.drill.drill),
    )


def _digest(path: Path | None) -> str:
    return sha256(path.read_bytes()).hexdigest() if path is not None else ""


def drawing_of(topology: Topology) -> Drawing:
    return Drawing(
        tuple(topology.routers),
        tuple((name, tuple(topology.routers_of(name))) for name in topology.brokers),
        tuple((edge.dialer, edge.to, edge.cost) for edge in topology.edges()),
    )


def previous_run(drill: str) -> dict[str, Any] | None:
    """What the latest run of it that is kept here came to."""
    for kept in sorted(RUNS.glob(f"*-{drill}/summary.json"), reverse=True):
        try:
            found: dict[str, Any] = json.loads(kept.read_text())["summary"]
        except (OSError, ValueError, KeyError):
            continue
        return found
    return None


def keep_and_tell(report: Report, order: Order, logs: Path | None, out: Output) -> int:
    from mesh.drills.junit import junit
    from mesh.drills.page import page
    from mesh.drills.terminal import tell

    stamp = report.started_at.replace("-", "").replace(":", "").partition("+")[0]
    folder = order.output or RUNS / f"{stamp}-{report.drill}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = {
            order.html or folder / "report.html": page(report),
            order.junit or folder / "junit.xml": junit(report),
            folder / "summary.json": json.dumps({**to_json(report), "summary": report.summary()}, indent=1),
        }
        for path, text in written.items():
            path.write_text(text)
        if logs is not None:
            shutil.copytree(logs, folder / "log", dirs_exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}: the report cannot be kept") from None
    if out.is_json:
        out.document(to_json(report))
    else:
        tell(report, out)
    out.say(f"report: {order.html or folder / 'report.html'}")
    if report.verdict is Verdict.UNKNOWN and "it was interrupted" in report.reasons:
        return ExitCode.INTERRUPTED
    return EXIT_CODES[report.verdict]


def to_json(report: Report) -> dict[str, Any]:
    """The report without what only charts need; per fault and address in one flat row."""
    fields = report.to_map()
    for name in ("series", "messages", "results"):
        del fields[name]
    labels = {fault.id: fault.label for fault in report.faults}
    return {**fields, "passed": report.verdict is Verdict.PASS, "results": list(_rows(report, labels))}


def _rows(report: Report, labels: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    return [
        {
            "fault": labels[result.fault],
            "address": result.address,
            "detection_ms": result.detection_ms,
            "outage_ms": result.outage_ms,
            "first_delivery_ms": result.first_delivery_ms,
            "recovery_ms": result.recovery_ms,
            "p99_before_ms": result.before.p99_ms,
            "p99_during_ms": result.during.p99_ms,
            "p99_after_ms": result.after.p99_ms,
            **{name: getattr(result.counts, name) for name in result.counts.__dataclass_fields__},
            "stalls": result.stalls,
            "longest_stall_ms": result.longest_stall_ms,
            "passed": result.passed,
        }
        for result in report.results
    ]

"""Runs `amqpmesh drill`: rehearses on a copy or against a running mesh, and prints and keeps the report."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from pathlib import Path

from mesh.deploy.scratch import scratch_folder
from mesh.drills.circumstances import circumstances
from mesh.drills.copy_rehearsal import rehearse_on_copy
from mesh.drills.drill_file import DrillFile, read_drill
from mesh.drills.judgement import make_report
from mesh.drills.link_logs import keep_link_logs
from mesh.drills.progress import DrillProgress
from mesh.drills.rehearsal_result import RehearsalResult
from mesh.drills.report import DrillReport, DrillVerdict
from mesh.drills.report_folder import PAGE, ReportPaths, keep, make_places, new_folder, to_json
from mesh.drills.running_mesh import RunningMesh, rehearse_against
from mesh.drills.terminal import tell
from mesh.reports.java import require_spark
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output
from mesh.terminal.topology_file import load_topology

EXIT_CODES = {
    DrillVerdict.PASS: ExitCode.OK,
    DrillVerdict.FAIL: ExitCode.EXPECTATION_FAILED,
    DrillVerdict.INVALID: ExitCode.DRILL_INVALID,
    DrillVerdict.UNKNOWN: ExitCode.DRILL_INVALID,
}


@dataclass(frozen=True, slots=True)
class DrillRequest:
    """The arguments of one run of `amqpmesh drill`."""

    file: Path
    topology_path: Path | None
    seed: int | None
    places: ReportPaths
    against: RunningMesh | None
    is_kept: bool = True
    """Whether the report is kept after the command, so that the report's path is printed."""
    is_link_log_reported: bool = False
    is_preferred: bool = True
    """Whether ``topology_path`` takes precedence over the topology file that the drill file names."""


def run(order: DrillRequest, out: Output) -> int:
    began = time.monotonic()
    file = read_drill(order.file)
    make_places(order.places)
    if order.is_link_log_reported:
        require_spark()
    with scratch_folder("amqpmesh-drill-") as folder:
        with DrillProgress(out) as progress:
            rehearsed = asyncio.run(_rehearse(order, file, folder, progress))
        made = circumstances(file.drill.drill, file.digest, rehearsed, time.monotonic() - began)
        report, page = _keep(order, make_report(file.drill, rehearsed.record, rehearsed.notices, made), rehearsed, out)
    if out.is_json:
        out.document({**to_json(report), "report": str(page)})
    else:
        tell(report, out)
    if order.is_kept:
        out.say(f"report: {page}")
    return ExitCode.INTERRUPTED if rehearsed.record.was_interrupted else EXIT_CODES[report.verdict]


def _keep(
    order: DrillRequest, report: DrillReport, rehearsed: RehearsalResult, out: Output
) -> tuple[DrillReport, Path]:
    """Keep the report of a drill and the link logs; return the report with links to these link logs, and the path of
    the report's page.
    """
    folder = order.places.folder or new_folder(report)
    recorded = keep_link_logs(rehearsed.link_logs, folder, is_reported=order.is_link_log_reported, out=out)
    told = recorded.told_by(report, order.places.html or folder / PAGE)
    return told, keep(told, replace(order.places, folder=folder), rehearsed.logs)


async def _rehearse(order: DrillRequest, file: DrillFile, folder: Path, progress: DrillProgress) -> RehearsalResult:
    if order.against is not None:
        return await rehearse_against(file, order.against, progress)
    path = order.topology_path
    if file.drill.topology is not None and (path is None or not order.is_preferred):
        path = file.path.parent / file.drill.topology
    seed = file.drill.seed if order.seed is None else order.seed
    return await rehearse_on_copy(file, load_topology(path), seed, folder, progress)

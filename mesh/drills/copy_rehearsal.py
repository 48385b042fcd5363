"""Runs a drill on a copy of a topology, which is started and stopped for the drill."""

from __future__ import annotations

from pathlib import Path

from addressing.topology.model import Topology
from mesh.deploy.node_kinds import node_names
from mesh.drills.circumstances import drawing_of
from mesh.drills.detection import read_notices
from mesh.drills.drill_file import DrillFile
from mesh.drills.judgement import baseline_failure
from mesh.drills.mesh_copy import stage
from mesh.drills.model import LinkFault
from mesh.drills.plan import make_plan
from mesh.drills.progress import DrillProgress
from mesh.drills.rehearsal import Rehearsal
from mesh.drills.rehearsal_result import RehearsalResult
from mesh.drills.stop_signals import stopped_by_signals


async def rehearse_on_copy(
    file: DrillFile, topology: Topology, seed: int, folder: Path, progress: DrillProgress
) -> RehearsalResult:
    """Plan the drill, start a copy of the mesh in ``folder``, run the drill, and read the notices in the nodes' logs.

    Raise DrillInvalid if the drill does not fit the topology.
    """
    plan = make_plan(file, topology, seed)
    links = {frozenset(planned.fault.link) for planned in plan.faults if isinstance(planned.fault, LinkFault)}
    stop = stopped_by_signals()
    async with stage(topology, links, folder, seed, progress.quiet) as mesh:
        rehearsal = Rehearsal(plan, mesh.servers, mesh, mesh.leases, progress, stop)
        record = await rehearsal.run(lambda record: baseline_failure(file.drill, record))
        logs = [mesh.workdir.log_file(name) for name in node_names(topology)]
        notices = read_notices(logs)
    link_logs = mesh.workdir.link_logs if mesh.topology.is_kept else None
    return RehearsalResult(record, seed, drawing_of(topology), notices, topology, logs[0].parent, link_logs)

"""Runs `amqpmesh up`: validates the topology, makes certificates, and becomes the supervisor, or starts it
detached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from addressing.topology.loader import Loaded
from addressing.topology.model import Topology
from mesh.deploy.control import ask
from mesh.deploy.detached import start_detached
from mesh.deploy.display import display
from mesh.deploy.link_log_writer import redaction_key
from mesh.deploy.log_rotation import log_limits
from mesh.deploy.mesh_status import MeshStatus
from mesh.deploy.node_kinds import plan
from mesh.deploy.node_program import topology_descriptor
from mesh.deploy.pki import make_pki
from mesh.deploy.readiness import MeshReadiness
from mesh.deploy.readiness_helper import fork_helper
from mesh.deploy.revision import next_revision, read_revision
from mesh.deploy.running_processes import option_for, supervisor_pid, topology_changes
from mesh.deploy.supervisor_program import SupervisorOrder, become_supervisor, tell_ready
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.terminal.topology_file import load_file, locate

LINES_SHOWN = 60


@dataclass(frozen=True, slots=True)
class UpRequest:
    """What the command line asks. ``planned`` returns the plan from the mesh that runs to a file, in lines, or none
    where nothing changes; it raises CommandFailed if the two cannot be compared.
    """

    topology_path: Path | None
    is_detached: bool
    is_patient: bool
    timeout_s: float
    report_fd: int | None
    planned: Callable[[Path, Topology], list[str]]


def run(order: UpRequest, out: Output) -> int:
    file = locate(order.topology_path).resolve()
    loaded = load_file(file)
    topology = loaded.topology
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    if order.report_fd is not None:
        return supervise(order, file, loaded, workdir, out)
    for warning in loaded.warnings:
        out.say(f"{warning}\n")
    if supervisor_pid(workdir) is not None:
        return already_runs(order, workdir, file, topology, out)
    make_pki(topology)
    if order.is_detached:
        return run_detached(order, file, workdir, out)
    return supervise(order, file, loaded, workdir, out)


def already_runs(order: UpRequest, workdir: WorkDir, file: Path, topology: Topology, out: Output) -> int:
    pid = supervisor_pid(workdir)
    if topology_changes(workdir, file):
        refuse_changes(order, f"the mesh already runs (process {pid})", file, topology)
    status = ask_status(workdir)
    if out.is_json:
        out.document({**status.to_map(), "supervisor_pid": pid, "already_running": True})
    else:
        out.say(f"{status.mesh} already runs (process {pid}), {status.phase}")
    return ExitCode.OK


def refuse_changes(order: UpRequest, begin: str, file: Path, topology: Topology) -> None:
    """Raise CommandFailed with the plan of what a file would change; return if it differs in comments or form only."""
    fix = "`amqpmesh down`, then `amqpmesh up`."
    try:
        lines = order.planned(file, topology)
    except CommandFailed as failure:
        raise CommandFailed(
            f"{begin}, from another version of {file}, and the two cannot be compared: {failure.message}", fix=fix
        ) from None
    if lines:
        shown = "\n".join(f"    {line}" if line else "" for line in lines[:LINES_SHOWN])
        left = len(lines) - LINES_SHOWN
        more = (
            f"\n    ... and {left:,} more lines: `amqpmesh plan{option_for(order.topology_path)}`" if left > 0 else ""
        )
        raise CommandFailed(
            f"{begin}, with a topology that differs from {file}:\n{shown}{more}",
            fix=f"`amqpmesh apply{option_for(order.topology_path)}`, if it only adds addresses; else {fix}",
        )


def ask_status(workdir: WorkDir) -> MeshStatus:
    try:
        return MeshStatus.from_map(ask(workdir.control_socket(SUPERVISOR), "status"))
    except OSError as error:
        raise CommandFailed(
            f"the supervisor of {workdir.root.name} does not answer: {error}",
            fix="`amqpmesh down` stops the mesh, even if its files were deleted; then run `amqpmesh up`.",
        ) from None


def run_detached(order: UpRequest, file: Path, workdir: WorkDir, out: Output) -> int:
    arguments = ["--topology", str(file), "--timeout", f"{order.timeout_s}s"]
    arguments += ["--no-wait"] if order.is_patient else []
    with display(out) as observe:
        start_detached(arguments, workdir.log_file(SUPERVISOR), observe)
    tell_ready(ask_status(workdir), supervisor_pid(workdir), out)
    return ExitCode.OK


def supervise(order: UpRequest, file: Path, loaded: Loaded, workdir: WorkDir, out: Output) -> NoReturn:
    """Become the supervisor of the mesh, in the foreground or as the process that ``run_detached`` started."""
    topology = loaded.topology
    # A bad redaction key fails `up` here: later only the link log writer would fail, again and again, unnoticed.
    redaction_key(topology)
    report_fds = [order.report_fd] if order.report_fd is not None else []
    revision = next_revision(read_revision(workdir), topology)
    topology_fd = topology_descriptor(topology, revision.mark)
    become_supervisor(
        SupervisorOrder(
            topology.mesh,
            str(file),
            loaded.text,
            revision,
            str(workdir.root),
            tuple((node.name, node.kind.name) for node in plan(topology)),
            topology_fd,
            topology.is_kept,
            topology.is_watched,
            order.is_patient,
            order.timeout_s,
            order.report_fd,
            out,
            fork_helper(MeshReadiness(topology, workdir), [topology_fd, *report_fds]),
            log_limits(topology),
        )
    )

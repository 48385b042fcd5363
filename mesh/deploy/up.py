"""Runs `amqpmesh up`: validates the topology, makes certificates, and runs the supervisor, here or detached."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from addressing.topology.model import Topology
from mesh.client.errors import MeshError
from mesh.deploy.control import ControlServer, ask
from mesh.deploy.detached import StartReport, start_detached
from mesh.deploy.display import Observer, display
from mesh.deploy.link_log_writer import redaction_key
from mesh.deploy.mesh_status import MeshPhase, MeshStatus
from mesh.deploy.node_kinds import plan
from mesh.deploy.pid_file import PidFile
from mesh.deploy.pki import make_pki
from mesh.deploy.readiness import MeshReadiness
from mesh.deploy.running_processes import stop_nodes, supervisor_pid, topology_changes
from mesh.deploy.signals import HarmlessSignals
from mesh.deploy.supervisor import Supervisor
from mesh.deploy.supervisor_log import OrphanStopped
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed, as_failure
from mesh.terminal.output import Output
from mesh.terminal.topology_file import load_file, locate
from wire.log import EventLog

CHANGES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class UpRequest:
    topology_path: Path | None
    is_detached: bool
    is_patient: bool
    timeout_s: float
    report_fd: int | None


def run(order: UpRequest, out: Output) -> int:
    file = locate(order.topology_path).resolve()
    loaded = load_file(file)
    topology = loaded.topology
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    if order.report_fd is not None:
        return run_reporting(order, order.report_fd, file, topology, workdir)
    for warning in loaded.warnings:
        out.say(f"{warning}\n")
    if supervisor_pid(workdir) is not None:
        return already_runs(workdir, file, out)
    make_pki(topology)
    if order.is_detached:
        return run_detached(order, file, workdir, out)
    return run_here(order, file, topology, workdir, out)


def already_runs(workdir: WorkDir, file: Path, out: Output) -> int:
    pid = supervisor_pid(workdir)
    changes = topology_changes(workdir, file)
    if changes:
        shown = "\n".join(f"    {line}" for line in changes[:CHANGES_SHOWN])
        more = f"\n    ... and {len(changes) - CHANGES_SHOWN} more lines" if len(changes) > CHANGES_SHOWN else ""
        raise CommandFailed(
            f"the mesh already runs (process {pid}), with a topology that differs from {file}:\n{shown}{more}",
            fix="`amqpmesh down`, then `amqpmesh up`.",
        )
    status = ask_status(workdir)
    if out.is_json:
        out.document({**status.to_map(), "supervisor_pid": pid, "already_running": True})
    else:
        out.say(f"{status.mesh} already runs (process {pid}), {status.phase}")
    return ExitCode.OK


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


def run_reporting(order: UpRequest, descriptor: int, file: Path, topology: Topology, workdir: WorkDir) -> int:
    """Run the supervisor in the process that ``run_detached`` started; report the progress of the start over the pipe
    ``descriptor``, to the command that waits for it.
    """
    report = StartReport(descriptor)

    def observe(status: MeshStatus) -> None:
        report.status(status)
        is_started = all(node.pid is not None or node.restarts for node in status.nodes)
        if status.phase is MeshPhase.READY or (order.is_patient and is_started):
            report.ready()

    try:
        supervise(order, file, topology, workdir, observe)
    except MeshError as error:
        report.failed(as_failure(error))
        raise
    return ExitCode.OK


def run_here(order: UpRequest, file: Path, topology: Topology, workdir: WorkDir, out: Output) -> int:
    with display(out) as show:
        is_ready = supervise(order, file, topology, workdir, with_ready_told(show, out))
    return ExitCode.OK if is_ready else ExitCode.INTERRUPTED


def with_ready_told(show: Observer, out: Output) -> Observer:
    is_told = False

    def observe(status: MeshStatus) -> None:
        nonlocal is_told
        show(status)
        if status.phase is MeshPhase.READY and not is_told:
            is_told = True
            tell_ready(status, None, out)

    return observe


def tell_ready(status: MeshStatus, pid: int | None, out: Output) -> None:
    if out.is_json:
        out.document({**status.to_map(), "supervisor_pid": pid, "already_running": False})
    else:
        out.data(f"{status.mesh} is {status.phase}")


def supervise(order: UpRequest, file: Path, topology: Topology, workdir: WorkDir, observe: Observer) -> bool:
    """Stop the nodes that an earlier supervisor left, then run the mesh until a signal stops it. Return True if the
    mesh had become ready before.
    """
    signals = HarmlessSignals()
    with PidFile(workdir.pid_file(SUPERVISOR)) as pid_file:
        if not pid_file.acquire():
            raise CommandFailed(f"another `up` of {topology.mesh} has just been started, so this one ends")
        # A bad redaction key fails `up` here: later only the link log writer would fail, again and again, unnoticed.
        redaction_key(topology)
        shutil.copyfile(file, workdir.running_topology)
        with workdir.log_file(SUPERVISOR).open("a") as stream:
            log = EventLog("supervisor", stream=stream)
            for name in stop_nodes(workdir):
                log.emit(OrphanStopped(name))
            readiness = MeshReadiness(topology, workdir)
            supervisor = Supervisor(
                topology.mesh, file, workdir, plan(topology), readiness, observe, log, is_recorded=topology.is_recorded
            )
            return asyncio.run(run_supervisor(supervisor, order, workdir, signals, log))


async def run_supervisor(
    supervisor: Supervisor, order: UpRequest, workdir: WorkDir, signals: HarmlessSignals, log: EventLog
) -> bool:
    stop = asyncio.Event()
    signals.watch(log.emit, catch_signals(stop, supervisor.kill_all))
    control = ControlServer(workdir.control_socket(SUPERVISOR), {"status": lambda _: supervisor.snapshot().to_map()})
    await control.start()
    try:
        return await supervisor.run(stop, timeout_s=order.timeout_s, is_patient=order.is_patient)
    finally:
        await control.stop()


def catch_signals(stop: asyncio.Event, kill: Callable[[], None]) -> Callable[[], None]:
    """Have the first SIGINT or SIGTERM set ``stop``, which stops the mesh in order, and the next ones call ``kill``.

    Return the handler, for other reasons to stop.
    """

    def on_signal() -> None:
        if stop.is_set():
            kill()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return on_signal

"""The program of the supervisor, which `amqpmesh up` becomes (exec) once it has read the topology: what it is told.

An idle supervisor takes 16 MB of memory; with the code that reads topologies, checks them, makes certificates and
speaks AMQP, it would take 44 MB, for as long as the mesh runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NoReturn

from mesh.client.errors import MeshError
from mesh.deploy.control import ControlServer
from mesh.deploy.detached import StartReport
from mesh.deploy.display import Observer, display
from mesh.deploy.log_rotation import LogLimits
from mesh.deploy.mesh_status import MeshPhase, MeshStatus
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_kinds import NODE_KINDS
from mesh.deploy.node_process import node_environment
from mesh.deploy.node_program import descriptor_of
from mesh.deploy.pid_file import PidFile
from mesh.deploy.process_memory import answer_memory
from mesh.deploy.readiness_helper import Helper, HelperReadiness
from mesh.deploy.revision import Revision, commit_revision
from mesh.deploy.revision_requests import RevisionRequests
from mesh.deploy.running_processes import stop_nodes
from mesh.deploy.signals import HarmlessSignals
from mesh.deploy.supervisor import Supervisor
from mesh.deploy.supervisor_log import OrphanStopped
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed, as_failure
from mesh.terminal.output import Output
from wire.log import EventLog

PROGRAM: Final = "mesh.commands.supervise"
"""The module that runs the supervisor's program. The module is one of the commands: errors and exit codes are those of
`amqpmesh up`.
"""


@dataclass(frozen=True, slots=True)
class SupervisorOrder:
    """All that a supervisor needs to know of a topology, and how `up` was called.

    ``text``: the topology file as it was read, which is committed as ``revision``; the file itself may differ by now.
    ``nodes``: the name and the kind of each node, in the order of their start. ``topology_fd``: the file in memory with
    the topology for the nodes. ``report_fd``: the pipe to `up --detach`, or None for a supervisor in the foreground.
    """

    mesh: str
    file: str
    text: str
    revision: Revision
    work_dir: str
    nodes: tuple[tuple[str, str], ...]
    topology_fd: int
    is_kept: bool
    is_watched: bool
    is_patient: bool
    timeout_s: float
    report_fd: int | None
    output: Output
    helper: Helper
    log_limits: LogLimits


def become_supervisor(order: SupervisorOrder) -> NoReturn:
    """Go on as the program of the supervisor."""
    descriptor = os.memfd_create("order", 0)
    os.pwrite(descriptor, json.dumps(asdict(order)).encode(), 0)
    # Others find a supervisor by these words of its command line.
    arguments = [sys.executable, "-P", "-m", PROGRAM, "up", "--topology", order.file, "--order-fd", str(descriptor)]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, arguments, node_environment())


def read_order(descriptor: int) -> SupervisorOrder:
    with open(descriptor, "rb") as file:
        told = json.load(file)
    nodes = tuple((name, kind) for name, kind in told.pop("nodes"))
    output, helper = Output(**told.pop("output")), Helper(**told.pop("helper"))
    limits, revision = LogLimits(**told.pop("log_limits")), Revision(**told.pop("revision"))
    return SupervisorOrder(nodes=nodes, output=output, helper=helper, log_limits=limits, revision=revision, **told)


def run(order: SupervisorOrder) -> int:
    """Run the mesh until a signal stops it; return the exit code."""
    if order.report_fd is not None:
        return run_reporting(order, StartReport(order.report_fd))
    with display(order.output) as show:
        is_ready = supervise(order, with_ready_told(show, order.output))
    return ExitCode.OK if is_ready else ExitCode.INTERRUPTED


def run_reporting(order: SupervisorOrder, report: StartReport) -> int:
    """Run the supervisor of `up --detach`; report the progress of the start to the command that waits for it."""

    def observe(status: MeshStatus) -> None:
        report.status(status)
        is_started = all(node.pid is not None or node.restarts for node in status.nodes)
        if status.phase is MeshPhase.READY or (order.is_patient and is_started):
            report.ready()

    try:
        supervise(order, observe)
    except MeshError as error:
        report.failed(as_failure(error))
        raise
    return ExitCode.OK


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


def supervise(order: SupervisorOrder, observe: Observer) -> bool:
    """Stop the nodes that an earlier supervisor left, then run the mesh until a signal stops it. Return True if the
    mesh had become ready before.
    """
    signals = HarmlessSignals()
    workdir, file = WorkDir(Path(order.work_dir)), Path(order.file)
    with PidFile(workdir.pid_file(SUPERVISOR)) as pid_file:
        if not pid_file.acquire():
            raise CommandFailed(
                f"another `up` of {order.mesh} was a moment earlier and starts the mesh, so this one ends"
            )
        with PidFile(workdir.lease_file) as lease:
            if not lease.acquire():
                raise CommandFailed(
                    f"`amqpmesh apply` still changes {order.mesh}",
                    fix="wait until it has ended, and start the mesh again.",
                )
            commit_revision(workdir, order.revision, order.text)
            workdir.journal_file.unlink(missing_ok=True)
            workdir.next_topology.unlink(missing_ok=True)
        with workdir.log_file(SUPERVISOR).open("a") as stream:
            log = EventLog("supervisor", stream=stream)
            for name in stop_nodes(workdir):
                log.emit(OrphanStopped(name))
            plan = [NodePlan(name, NODE_KINDS[kind]) for name, kind in order.nodes]
            readiness = HelperReadiness(order.helper)
            supervisor = Supervisor(
                order.mesh,
                file,
                workdir,
                plan,
                readiness,
                observe,
                log,
                topology_fd=order.topology_fd,
                is_kept=order.is_kept,
                is_watched=order.is_watched,
                log_limits=order.log_limits,
            )
            return asyncio.run(run_supervisor(supervisor, order, workdir, signals, log))


class TopologyTaker:
    """Takes the topology of a revision for the processes that the supervisor starts from then on."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def read(self, part: bytes) -> bytes:
        return part

    def check(self, parts: Sequence[bytes]) -> None:
        if self._supervisor.snapshot().phase is not MeshPhase.READY:
            raise ValueError("the mesh is not ready")

    def commit(self, parts: Sequence[bytes]) -> None:
        self._supervisor.take_topology(descriptor_of(b"".join(parts)))


async def run_supervisor(
    supervisor: Supervisor, order: SupervisorOrder, workdir: WorkDir, signals: HarmlessSignals, log: EventLog
) -> bool:
    stop = asyncio.Event()
    signals.watch(log.emit, catch_signals(stop, supervisor.kill_all))
    revision = RevisionRequests(order.revision.mark, TopologyTaker(supervisor), log.emit)
    handlers = {
        "status": lambda _: supervisor.snapshot().to_map(),
        "memory": answer_memory,
        **revision.handlers(),
    }
    control = ControlServer(workdir.control_socket(SUPERVISOR), handlers)
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

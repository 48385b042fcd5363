"""Keeps the nodes of a topology running, one process each, and calls the mesh READY only after a successful probe.

    STARTING -> LINKING -> PROBING -> READY -> STOPPING -> STOPPED
        \\_________\\__________\\__________________________> FAILED

A node that dies before READY fails the whole start, and all nodes are stopped; a node that dies later is started again
after a delay. With ``is_patient`` (`up --no-wait`) a node that dies before READY is started again, too.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from mesh.client.errors import MeshError, TimedOut
from mesh.deploy.backoff import Backoff, Death
from mesh.deploy.control import ask_async
from mesh.deploy.log_rotation import LogLimits
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState, NodeStatus
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_process import NODE_PROGRAM, OBSERVER_PROGRAM, TOPOLOGY_FD, NodeProcess, command_line
from mesh.deploy.pid_file import PidFile
from mesh.deploy.polling import wait_until
from mesh.deploy.supervisor_log import NodeDied, NodeStarted, NodeStopped, PhaseEntered, StartFailed
from mesh.deploy.workdir import OBSERVER, WRITER, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from wire.log import EventLog

HELPER_STARTS_WITHIN_S = 2.0
OBSERVER_WAITS_S = 10.0


class Readiness(Protocol):
    """Decides for the supervisor whether a mesh is ready, see ``mesh.deploy.readiness``."""

    async def wait_linked(self) -> None:
        """Return once every connection and path of the topology is up."""

    async def wait_probed(self) -> None:
        """Return once probe messages have passed through every router and embedded broker."""

    def missing(self) -> str:
        """Return a text that names the connections or probes still missing, for an error message."""


_DEFAULT_LIMITS: Final = LogLimits()


class Supervisor:
    """Runs the nodes of ``plan`` as processes, starts dead nodes again, and reports each change to ``observe``."""

    def __init__(
        self,
        mesh: str,
        topology_file: Path,
        workdir: WorkDir,
        plan: Sequence[NodePlan],
        readiness: Readiness,
        observe: Callable[[MeshStatus], None],
        log: EventLog,
        *,
        topology_fd: int,
        is_kept: bool = False,
        is_watched: bool = False,
        log_limits: LogLimits = _DEFAULT_LIMITS,
    ) -> None:
        """Make the supervisor; ``run`` starts the nodes, which have the topology from the file in memory
        ``topology_fd``. ``is_kept``: link logs are kept in files, so the supervisor runs the writer of link logs
        as well. ``is_watched``: the supervisor runs an observer, too. ``log_limits``: when a start rotates a log.
        """
        self._mesh = mesh
        self._topology_file = topology_file
        self._workdir = workdir
        self._plan = plan
        self._readiness = readiness
        self._observe = observe
        self._log = log
        self._log_limits = log_limits
        self._phase = MeshPhase.STARTING
        self._detail = ""
        self._nodes = {node.name: NodeStatus(node.name, node.kind.name, NodeState.STARTING) for node in plan}
        self._processes = {node.name: self._node_process(node.name, topology_fd) for node in plan}
        self._writer = self._writer_process() if is_kept else None
        self._observer = self._observer_process(topology_fd) if is_watched else None
        self._topology_fd = topology_fd
        self._is_observer_renewed = False
        self._observer_stop: asyncio.Task[object] | None = None

    # All processes have the committed topology, also when they are started again, and never that of an edited file.
    def _node_process(self, name: str, topology_fd: int) -> NodeProcess:
        command = self._node_command(name, topology_fd)
        return NodeProcess(name, command, self._workdir.log_file(name), [topology_fd], self._log_limits)

    def _node_command(self, name: str, topology_fd: int) -> list[str]:
        arguments = ("node", name, "--topology", str(self._topology_file), TOPOLOGY_FD, str(topology_fd))
        return command_line(*arguments, program=NODE_PROGRAM)

    def _writer_process(self) -> NodeProcess:
        topology = ("--topology", str(self._topology_file), "--as-read", str(self._workdir.running_topology))
        command = command_line("linklogs", "write", *topology)
        return NodeProcess(WRITER, command, self._workdir.log_file(WRITER), log_limits=self._log_limits)

    def _observer_process(self, topology_fd: int) -> NodeProcess:
        command = self._observer_command(topology_fd)
        return NodeProcess(OBSERVER, command, self._workdir.log_file(OBSERVER), [topology_fd], self._log_limits)

    def _observer_command(self, topology_fd: int) -> list[str]:
        arguments = ("watch", "--topology", str(self._topology_file), TOPOLOGY_FD, str(topology_fd))
        return command_line(*arguments, program=OBSERVER_PROGRAM)

    def take_topology(self, topology_fd: int) -> None:
        """Start nodes with the topology in the file in memory ``topology_fd`` from now on.

        The nodes that run know it already. The observer is started again at once, as it has read the one before.
        """
        before, self._topology_fd = self._topology_fd, topology_fd
        for name, process in self._processes.items():
            process.renew(self._node_command(name, topology_fd), [topology_fd])
        if self._observer is not None:
            self._observer.renew(self._observer_command(topology_fd), [topology_fd])
            if self._observer.pid is not None:
                self._is_observer_renewed = True
                self._observer_stop = self._task(self._observer.stop())
        os.close(before)

    def snapshot(self) -> MeshStatus:
        return MeshStatus(self._mesh, self._phase, tuple(self._nodes.values()), self._detail)

    async def run(self, stop: asyncio.Event, *, timeout_s: float, is_patient: bool = False) -> bool:
        """Run the mesh until ``stop`` is set, then stop all nodes. Return True if the mesh had become ready before.

        Raises CommandFailed or TimedOut, after all nodes have been stopped, if the mesh could not be made ready.
        """
        tasks = [self._task(self._keep(node.name, is_patient)) for node in self._plan]
        tasks.append(self._task(self._become_ready(None if is_patient else timeout_s)))
        if self._writer is not None:
            tasks.append(self._task(self._keep_helper(self._writer)))
        if self._observer is not None:
            tasks.append(self._task(self._keep_observer(self._observer)))
        stopped = self._task(stop.wait())
        try:
            await self._wait_stopped(stopped, tasks)
            return self._phase is MeshPhase.READY
        except MeshError as error:
            self._enter(MeshPhase.FAILED, error.message)
            raise
        finally:
            await self._stop_all([*tasks, stopped])

    @staticmethod
    def _task(work: Coroutine[None, None, object]) -> asyncio.Task[object]:
        return asyncio.create_task(work)

    async def _wait_stopped(self, stopped: asyncio.Task[object], tasks: list[asyncio.Task[object]]) -> None:
        pending = {stopped, *tasks}
        while not stopped.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _keep(self, name: str, is_patient: bool) -> None:
        backoff = Backoff()
        while True:
            exit_code = await self._run_once(name)
            process = self._processes[name]
            cause = process.death_sentence(exit_code)
            was_up = self._nodes[name].state is NodeState.UP
            if self._phase is not MeshPhase.READY and not is_patient:
                self._update(name, state=NodeState.DOWN, pid=None, detail=cause)
                own = exit_code == ExitCode.STORE_DAMAGED
                code = ExitCode.STORE_DAMAGED if own else ExitCode.FAILED
                raise CommandFailed(cause, exit_code=code, fix=self._fix_of(cause))
            delay_s = backoff.on_exit(Death(exit_code, cause, process.ran_s, was_up))
            restarts = self._nodes[name].restarts + 1
            self._log.emit(NodeDied(name, exit_code, cause, delay_s))
            self._update(name, state=NodeState.WAITING, pid=None, restarts=restarts, detail=cause)
            await asyncio.sleep(delay_s)
            await wait_until(lambda: self._is_not_held(name))

    async def _keep_observer(self, observer: NodeProcess) -> None:
        """Start the observer once the mesh is ready, so that it does not slow the start, and again when it dies.

        A mesh that is not ready after OBSERVER_WAITS_S has an observer, too, which shows what is missing.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(OBSERVER_WAITS_S):
                await wait_until(self._is_ready)
        await self._keep_helper(observer)

    async def _is_ready(self) -> bool:
        return self._phase is MeshPhase.READY

    async def _keep_helper(self, helper: NodeProcess) -> None:
        """Start the link log writer, or the observer, again when it dies; meanwhile records wait in the rings."""
        backoff = Backoff()
        while True:
            await helper.start()
            exit_code = await helper.wait()
            if helper is self._observer and self._is_observer_renewed:
                self._is_observer_renewed = False
                continue
            cause = helper.death_sentence(exit_code)
            # These processes have no control socket: one that has run for 2 s counts as up, since it has found its
            # files, ports and rings in order.
            was_up = helper.ran_s >= HELPER_STARTS_WITHIN_S
            delay_s = backoff.on_exit(Death(exit_code, cause, helper.ran_s, was_up))
            self._log.emit(NodeDied(helper.name, exit_code, cause, delay_s))
            await asyncio.sleep(delay_s)

    async def _is_not_held(self, name: str) -> bool:
        """Tell whether the supervisor may start node ``name``: a drill keeps a node down by a lock, which the kernel
        drops when the drill ends.
        """
        return PidFile(self._workdir.hold_file(name)).holder() is None

    def _fix_of(self, cause: str) -> str | None:
        if os.strerror(errno.EADDRINUSE).lower() not in cause.lower():
            return None
        return (
            f"`amqpmesh doctor -t {self._topology_file}` shows which ports are in use, and how to find "
            "the processes that use them."
        )

    async def _run_once(self, name: str) -> int:
        """Start the process of node ``name``, set the node to up once it answers, and return the exit code of the
        process.
        """
        process = self._processes[name]
        await process.start()
        self._update(name, state=NodeState.STARTING, pid=process.pid)
        self._log.emit(NodeStarted(name, process.pid))
        watch = asyncio.create_task(self._watch_up(name))
        try:
            return await process.wait()
        finally:
            watch.cancel()

    async def _watch_up(self, name: str) -> None:
        await wait_until(lambda: self._answers(name))
        self._update(name, state=NodeState.UP, detail="")

    async def _answers(self, name: str) -> bool:
        try:
            await ask_async(self._workdir.control_socket(name), "snapshot")
        except OSError:
            return False
        return True

    async def _become_ready(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await wait_until(self._are_all_up)
                self._enter(MeshPhase.LINKING)
                await self._readiness.wait_linked()
                self._enter(MeshPhase.PROBING)
                await self._readiness.wait_probed()
        except TimeoutError:
            raise TimedOut(f"the mesh was not ready after {timeout_s:g} s: {self._missing()}") from None
        self._enter(MeshPhase.READY)

    async def _are_all_up(self) -> bool:
        return all(node.state is NodeState.UP for node in self._nodes.values())

    def _missing(self) -> str:
        late = [node.name for node in self._nodes.values() if node.state is not NodeState.UP]
        return f"{', '.join(late)} not started" if late else self._readiness.missing()

    async def _stop_all(self, tasks: Sequence[asyncio.Task[object]]) -> None:
        if self._phase is not MeshPhase.FAILED:
            self._enter(MeshPhase.STOPPING)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._observer is not None:
            await self._observer.stop()
        for rank in sorted({node.kind.rank for node in self._plan}, reverse=True):
            await asyncio.gather(*(self._stop(node.name) for node in self._plan if node.kind.rank == rank))
        if self._writer is not None:
            await self._writer.stop()
        if self._phase is MeshPhase.STOPPING:
            self._enter(MeshPhase.STOPPED)

    async def _stop(self, name: str) -> None:
        if self._processes[name].pid is not None:
            self._update(name, state=NodeState.STOPPING)
            await self._processes[name].stop()
            self._log.emit(NodeStopped(name))
        self._update(name, state=NodeState.DOWN, pid=None)

    def kill_all(self) -> None:
        """Send SIGKILL to all nodes and the link log writer, for a user who asks a second time to stop."""
        for process in (*self._processes.values(), *filter(None, (self._writer, self._observer))):
            process.signal(signal.SIGKILL)

    def _update(self, name: str, **changes: object) -> None:
        self._nodes[name] = replace(self._nodes[name], **changes)  # type: ignore[arg-type]
        self._observe(self.snapshot())

    def _enter(self, phase: MeshPhase, detail: str = "") -> None:
        self._phase, self._detail = phase, detail
        self._log.emit(StartFailed(detail) if phase is MeshPhase.FAILED else PhaseEntered(str(phase)))
        self._observe(self.snapshot())

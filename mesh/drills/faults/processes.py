"""Faults of a node's process: killed, stopped in order, restarted, or paused."""

from __future__ import annotations

import asyncio
import os
import signal
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

from mesh.deploy.control import ask_async
from mesh.deploy.node_process import describe_exit
from mesh.deploy.pid_file import PidFile
from mesh.deploy.polling import wait_until
from mesh.deploy.running_processes import node_pid
from mesh.deploy.workdir import WorkDir
from mesh.drills.faults.injection import Injection
from mesh.drills.leases import let_go_on
from mesh.drills.mesh_copy import MeshCopy
from mesh.drills.model import NodeFault
from mesh.terminal.failure import CommandFailed

BACK_S = 60.0
GONE_S = 20.0
LEASE_MARGIN_S = 30.0


class NodeInjection(Injection):
    def __init__(self, fault: NodeFault, stage: MeshCopy) -> None:
        super().__init__()
        self.fault = fault
        self.stage = stage
        self.node = fault.targets[0]
        self.old_pid = 0

    async def prepare(self) -> None:
        await answers_soon(self.stage.workdir, self.node)

    def pid(self) -> int:
        pid = node_pid(self.stage.workdir, self.node)
        if pid is None:
            raise CommandFailed(f"{self.node} does not run: expected a running node to {self.fault.kind}")
        return pid

    async def wait_back(self) -> None:
        """Wait until another process runs the node; note a failed healing if none does within 60 s."""
        if not await answers_soon(self.stage.workdir, self.node, self.old_pid):
            self.stays(f"{self.node} did not come back within {BACK_S:g} s")
            return
        self.say(f"process {node_pid(self.stage.workdir, self.node)} runs {self.node} again")


class EndedProcess(NodeInjection):
    """Ends the node's process with a signal; if ``stays_away``, a lock file keeps the node down until healing."""

    number: signal.Signals

    def __init__(self, fault: NodeFault, stage: MeshCopy) -> None:
        super().__init__(fault, stage)
        self._hold = PidFile(stage.workdir.hold_file(self.node))

    @property
    @abstractmethod
    def stays_away(self) -> bool:
        """Tell whether the drill keeps the supervisor from starting the node again until the fault is healed."""

    async def apply(self) -> None:
        self.old_pid = self.pid()
        if self.stays_away:
            self._hold.acquire()
        os.kill(self.old_pid, self.number)
        if await holds_soon(lambda: node_pid(self.stage.workdir, self.node) != self.old_pid, GONE_S):
            self.bit(f"process {self.old_pid} of {self.node} {describe_exit(-self.number)}")

    async def heal(self) -> None:
        self._hold.release()
        await self.wait_back()


class KilledProcess(EndedProcess):
    number = signal.SIGKILL

    @property
    def stays_away(self) -> bool:
        return self.fault.for_ is not None


class StoppedProcess(EndedProcess):
    number = signal.SIGTERM
    stays_away = True


class RestartedProcess(EndedProcess):
    number = signal.SIGTERM
    stays_away = False


class PausedProcess(NodeInjection):
    _lease = 0

    async def apply(self) -> None:
        self.old_pid = self.pid()
        self._lease = self.stage.leases.grant(let_go_on(self.old_pid), (self.fault.for_ or 0) + 3600)
        os.kill(self.old_pid, signal.SIGSTOP)
        if await holds_soon(lambda: state_of(self.old_pid) == "T", 1.0):
            self.bit(f"process {self.old_pid} of {self.node} is stopped")

    async def heal(self) -> None:
        self.stage.leases.heal(self._lease)
        if await holds_soon(lambda: state_of(self.old_pid) not in ("T", ""), 1.0):
            self.say(f"process {self.old_pid} continues")
        elif state_of(self.old_pid):
            self.stays(f"process {self.old_pid} of {self.node} is still stopped, although it was told to continue")


async def answers_soon(workdir: WorkDir, node: str, old_pid: int | None = None) -> bool:
    """Tell whether, within ``BACK_S`` seconds, a process other than ``old_pid`` runs the node and answers its control
    socket.
    """

    async def is_up() -> bool:
        if node_pid(workdir, node) in (None, old_pid):
            return False
        try:
            await ask_async(workdir.control_socket(node), "snapshot")
        except OSError:
            return False
        return True

    try:
        async with asyncio.timeout(BACK_S):
            await wait_until(is_up)
    except TimeoutError:
        return False
    return True


def state_of(pid: int) -> str:
    """Return the state of a process as one letter, as in ps(1); empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


async def holds_soon(holds: Callable[[], bool], within_s: float) -> bool:
    async def is_so() -> bool:
        return holds()

    try:
        async with asyncio.timeout(within_s):
            await wait_until(is_so)
    except TimeoutError:
        return False
    return True


PROCESS_INJECTIONS: dict[str, type[NodeInjection]] = {
    "kill": KilledProcess,
    "stop": StoppedProcess,
    "restart": RestartedProcess,
    "pause": PausedProcess,
}

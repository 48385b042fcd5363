"""Runs one node in this process with a locked pid file, a log and a control socket, until a signal stops the node."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mesh.client.errors import MeshError
from mesh.deploy.control import ControlServer, Handler
from mesh.deploy.log_requests import LOG_HANDLERS
from mesh.deploy.log_rotation import log_limits, rotation_of
from mesh.deploy.memory_return import MemoryReturn
from mesh.deploy.node_files import node_files
from mesh.deploy.node_kinds import kind_of
from mesh.deploy.pid_file import PidFile
from mesh.deploy.process_memory import answer_memory
from mesh.deploy.running_processes import node_pid
from mesh.deploy.sd_notify import notify
from mesh.deploy.signals import HarmlessSignals
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from wire import log
from wire.driver import BindError
from wire.log import Level, LogEvent
from wire.transport.tls import TlsSetupError

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class NodeStarted(LogEvent):
    """The listeners of the node are open, and the control socket answers."""

    kind: str
    pid: int
    event_loop: str


@dataclass(frozen=True, slots=True)
class NodeFailed(LogEvent):
    """The node could not start, or an error ended the node; `reason` is the error."""

    level: ClassVar[Level] = "error"

    reason: str


@dataclass(frozen=True, slots=True)
class NodeStopped(LogEvent):
    """The node stopped in order, after SIGTERM, Ctrl-C or the loss of its terminal."""


def run(topology: Topology, name: str, out: Output) -> None:
    workdir = WorkDir(topology.work_dir)
    log.configure(name, before_line=rotation_of(workdir.log_file(name), log_limits(topology)))
    workdir.make()
    signals = HarmlessSignals()
    with PidFile(workdir.pid_file(name)) as pid_file:
        if not pid_file.acquire():
            raise CommandFailed(f"node {name} already runs, as process {node_pid(workdir, name)}")
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(NodeRun(topology, name, out, signals).run())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory of event loops if uvloop is installed; None means asyncio's own event loop."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class NodeRun:
    def __init__(self, topology: Topology, name: str, out: Output, signals: HarmlessSignals) -> None:
        self._topology = topology
        self._name = name
        self._kind = kind_of(topology, name)
        self._out = out
        self._signals = signals
        self._stop = asyncio.Event()
        self._control: ControlServer | None = None
        self._memory: asyncio.Task[None] | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_asked_to_stop)
        self._signals.watch(log.emit, self._on_asked_to_stop)
        try:
            files = node_files(self._topology, self._name)
            await self._kind.run(self._topology, self._name, files, self._stop, self._on_started)
        except MeshError as error:
            log.emit(NodeFailed(error.message))
            raise
        except (BindError, TlsSetupError, OSError) as error:
            log.emit(NodeFailed(str(error)))
            raise CommandFailed(f"{self._name}: {error}") from None
        finally:
            if self._memory is not None:
                self._memory.cancel()
            if self._control is not None:
                await self._control.stop()
        log.emit(NodeStopped())
        self._tell("stopped")

    def _on_asked_to_stop(self) -> None:
        if not self._stop.is_set():
            notify("STOPPING=1")
            self._stop.set()

    async def _on_started(self, handlers: Mapping[str, Handler]) -> None:
        """Open the control socket, then report the start; the node calls this function once its listeners are open."""
        # What the start has made stays until the end of the node: collections need not look through it.
        gc.freeze()
        gc.enable()
        self._memory = asyncio.create_task(MemoryReturn().keep())
        workdir = WorkDir(self._topology.work_dir)
        handlers = {**handlers, "memory": answer_memory, **LOG_HANDLERS}
        self._control = ControlServer(workdir.control_socket(self._name), handlers)
        await self._control.start()
        event_loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
        log.emit(NodeStarted(self._kind.name, os.getpid(), event_loop))
        notify("READY=1", f"STATUS={self._kind.name} {self._name} of mesh {self._topology.mesh}")
        self._tell("started")

    def _tell(self, state: str) -> None:
        if self._out.is_json:
            self._out.document({"node": self._name, "kind": self._kind.name, "state": state, "pid": os.getpid()})

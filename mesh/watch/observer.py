"""The observer: a process that reads the rings of the nodes on this host, and answers requests over HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from mesh.deploy.control import ask_async
from mesh.deploy.node_process import OBSERVER_PROGRAM, TOPOLOGY_FD, command_line, node_environment
from mesh.deploy.node_program import topology_descriptor
from mesh.deploy.operator import servers_for_programs
from mesh.deploy.pid_file import PidFile
from mesh.deploy.running_processes import node_pid, supervisor_pid
from mesh.deploy.sd_notify import SOCKET, notify
from mesh.deploy.signals import HarmlessSignals
from mesh.deploy.workdir import OBSERVER, WorkDir
from mesh.terminal.failure import CommandFailed
from mesh.watch.access import Access
from mesh.watch.audit import AuditLog
from mesh.watch.console import Console
from mesh.watch.declared_limits import declared_limits
from mesh.watch.expected_nodes import ExpectedNode, expected_nodes
from mesh.watch.host_answers import HostAnswers
from mesh.watch.host_changes import HostChanges
from mesh.watch.host_id import host_id
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh.watch.http_protocol import HttpServer
from mesh.watch.idempotency import WriteKeys
from mesh.watch.management.agent import ManagementAgent, container_id
from mesh.watch.mesh_link import MeshLink
from mesh.watch.mesh_view import MeshView
from mesh.watch.node_events import NodeEvents
from mesh.watch.operator_views import OperatorViews, handlers_of
from mesh.watch.other_hosts import OtherHosts
from mesh.watch.pattern_lookup import declared_patterns, detail_lookup, pattern_lookup, unlisted_patterns
from mesh.watch.rest import ObserverState, application
from mesh.watch.troubles import host_troubles
from mesh.watch.visible_rows import RowsByOperator
from mesh.watch.writes import MeshWrites
from wire.log import EventLog, Level, LogEvent

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.client.server import Server
    from mesh.watch.mesh_requests import MeshRequests

HOST: Final = "127.0.0.1"
PORT: Final = "--port"
"""The option of the observer's program for its port."""
JSON: Final = "--json"
LEAST_TOKEN_CHARS: Final = 32
"""A shorter token was not made by `token`."""
WATCHED_S: Final = 0.25
"""The time between two looks at the rings while a stream is open; else IDLE_S."""
IDLE_S: Final = 1.0
KEYS_FILE: Final = "keys.jsonl"
"""The file with the keys of changes, beside the audit."""


@dataclass(frozen=True, slots=True)
class ObserverStarted(LogEvent):
    """The observer reads the rings of this host's nodes, and answers at `url`."""

    url: str


@dataclass(frozen=True, slots=True)
class ObserverStopped(LogEvent):
    """The observer stopped in order, after SIGTERM or Ctrl-C."""


@dataclass(frozen=True, slots=True)
class ObserverFailed(LogEvent):
    """The observer could not start; `reason` is the error."""

    level: ClassVar[Level] = "error"

    reason: str


@dataclass(frozen=True, slots=True)
class RingNotRead(LogEvent):
    """The observer cannot read the ring of a node, and shows nothing of this run of the node."""

    level: ClassVar[Level] = "warning"

    reason: str


@dataclass(frozen=True, slots=True)
class AuditNotWritten(LogEvent):
    """A change was made, or asked for, and its line of the audit cannot be written; `reason` names the file."""

    level: ClassVar[Level] = "error"

    reason: str


def become_observer(topology: Topology, port: int | None, *, is_json: bool = False) -> NoReturn:
    """Go on as the program of the observer. ``port`` None: that of the topology. ``is_json``: errors are JSON."""
    arguments = ["watch", *(("--topology", str(topology.file)) if topology.file is not None else ())]
    arguments += [TOPOLOGY_FD, str(topology_descriptor(topology)), *((PORT, str(port)) if port is not None else ())]
    arguments += [JSON] if is_json else []
    environment = node_environment()
    if SOCKET in os.environ:
        environment[SOCKET] = os.environ[SOCKET]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command_line(*arguments, program=OBSERVER_PROGRAM), environment)


def observe(topology: Topology, port: int, requests: MeshRequests) -> None:
    """Observe the nodes of ``topology`` on this host until SIGTERM or SIGINT; change them by ``requests``.

    ``port``: where to listen for HTTP, on 127.0.0.1; 0 for any free port. The URL is in `observer_file`. Raises
    CommandFailed if the port is in use, or if an observer of this mesh runs already.
    """
    log = EventLog(OBSERVER)
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    signals = HarmlessSignals()
    with PidFile(workdir.pid_file(OBSERVER)) as pid_file:
        if not pid_file.acquire():
            raise CommandFailed(
                f"an observer of mesh {topology.mesh} runs here already, as process {node_pid(workdir, OBSERVER)}",
                fix="ask this one; `watch: off` in the topology keeps `up` from starting an observer.",
            )
        try:
            listener = _listener(port)
        except CommandFailed as error:
            log.emit(ObserverFailed(error.message))
            raise
        with listener, _announced(workdir, listener) as url:
            log.emit(ObserverStarted(url))
            notify("READY=1", f"STATUS=observer of mesh {topology.mesh} at {url}")
            asyncio.run(_observe(topology, workdir, listener, log, signals, requests))
    log.emit(ObserverStopped())


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {HOST}:{port}: {error.strerror}",
            fix="give another port by the key `watch` of the topology, or by --port.",
        ) from None


async def _observe(
    topology: Topology,
    workdir: WorkDir,
    listener: socket.socket,
    log: EventLog,
    signals: HarmlessSignals,
    requests: MeshRequests,
) -> None:
    own = host_id(workdir)
    host = HostModel(
        pattern_lookup(topology), declared_patterns(topology), declared_limits(topology), detail_lookup(topology), own
    )
    host.on_time(time.time())
    tasks: set[asyncio.Task[None]] = set()

    def relist(node: str) -> None:
        task = asyncio.create_task(_ask_to_list(workdir, node))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    everything = expected_nodes(topology)

    def expected() -> tuple[ExpectedNode, ...]:
        # `up` runs all nodes here; without it, each host has some of them, which only the rings tell.
        if supervisor_pid(workdir) is not None:
            return everything
        return tuple(node for node in everything if node.name in host.nodes or workdir.pid_file(node.name).exists())

    names = [node.name for node in everything]
    rings = HostRings(workdir.rings, host, relist, lambda sentence: log.emit(RingNotRead(sentence)), names)
    access, rows = Access(topology, token(workdir), time.time), RowsByOperator(host, topology)
    state = ObserverState(topology.mesh, version("amqpmesh"), host, access, rows, expected, unlisted_patterns(topology))
    answers = HostAnswers(
        host,
        expected,
        lambda sees: host_troubles(host, sees)[0],
        lambda user: rows.of(access.rights.operator(user)),
    )
    link = MeshLink(lambda: routers_to_ask(topology, workdir), f"amqpmesh-observer-{own}")
    others = OtherHosts(link, own, answers, lambda: host.nodes)
    roles = {node.name: node.role for node in everything}
    view = state.view = MeshView(host, answers, roles, others, lambda: supervisor_pid(workdir) is not None)
    state.console = Console(topology, host, access, rows, token_file(workdir), view)
    audit, events = AuditLog(workdir.audit), NodeEvents(workdir.log_file(OBSERVER).parent)
    elsewhere = HostChanges(others)
    writes = MeshWrites(
        topology, host, rows, requests, WriteKeys(workdir.audit / KEYS_FILE, time.time), audit,
        lambda sentence: log.emit(AuditNotWritten(sentence)), elsewhere,
    )  # fmt: skip
    with _trouble_told(log):
        await writes.settle_interrupted()
    views = OperatorViews(topology, host, rows, writes, audit, events, elsewhere)
    others.answer_by(handlers_of(writes, views))
    state.operations = [*writes.routes(), *views.routes()]
    server = HttpServer(application(state))

    def stop() -> None:
        state.stopping.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    signals.watch(log.emit, stop)
    following = asyncio.create_task(_follow(rings, state))

    async def record_change(entry: Mapping[str, Any]) -> None:
        with _trouble_told(log):
            await audit.append(entry)

    agent = ManagementAgent(
        topology,
        host,
        link,
        lambda name: MeshLink(lambda: servers_for_programs(topology, name), container_id(name)),
        rings.step,
        record_change,
        writes.set_cost_elsewhere,
    )
    managing = asyncio.create_task(agent.run(state.stopping))
    unlink = asyncio.Event()
    linked = asyncio.create_task(link.run(unlink))
    telling = asyncio.create_task(others.run(state.stopping))
    try:
        serving = asyncio.create_task(server.serve([listener]))
        tasks_of_observer = {following, serving, managing, linked, telling}
        await asyncio.wait(tasks_of_observer, return_when=asyncio.FIRST_COMPLETED)
        stop()
        await asyncio.gather(following, serving, managing, telling)
        await others.leave()
        unlink.set()
        await linked
    finally:
        rings.close()


@contextmanager
def _trouble_told(log: EventLog) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.emit(AuditNotWritten(f"{error.filename or 'the audit'}: {error.strerror}"))


async def _follow(rings: HostRings, state: ObserverState) -> None:
    # Until all is read, entities come by the hundred thousand and none is garbage: collections would take 40 % of the
    # time until the observer is full. The entities are then left out of all later collections.
    gc.disable()
    try:
        while not state.stopping.is_set():
            if rings.step():
                # There is more to read; requests are answered in between.
                await asyncio.sleep(0)
                continue
            if not state.is_complete:
                gc.freeze()
                gc.enable()
                state.is_complete = True
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCHED_S if state.streams else IDLE_S):
                    await state.stopping.wait()
    finally:
        gc.enable()


def routers_to_ask(topology: Topology, workdir: WorkDir) -> Iterator[Server]:
    """Yield the node ports of routers for programs of this host: first of routers that run here, then of all others."""
    names = sorted(topology.routers, key=lambda name: node_pid(workdir, name) is None)
    for name in names:
        yield from servers_for_programs(topology, name)


async def _ask_to_list(workdir: WorkDir, node: str) -> None:
    # A node that does not answer has ended, or is an older version, which cannot list: what it has stays unknown.
    with suppress(OSError):
        await ask_async(workdir.control_socket(node), "relist")


def observer_file(workdir: WorkDir) -> Path:
    """Return the file that names the URL of the running observer: `{"url": "http://127.0.0.1:15680"}`."""
    return workdir.observer_file


def token_file(workdir: WorkDir) -> Path:
    return workdir.root / "run" / f"{OBSERVER}.token"


def token(workdir: WorkDir) -> str:
    """Return the token of the observer, and make it first if there is none.

    The token stays the same when the observer starts again, since programs that ask the observer are configured with
    it. Only the owner of the mesh can read the file. A file that others can read, or without a whole token, as a full
    disk leaves it, is made anew.
    """
    path = token_file(workdir)
    with suppress(FileNotFoundError):
        found = path.read_text().strip()
        if len(found) >= LEAST_TOKEN_CHARS and not path.stat().st_mode & 0o077:
            return found
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    new = secrets.token_urlsafe(LEAST_TOKEN_CHARS)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(new + "\n")
        file.flush()
        os.fsync(descriptor)
    unfinished.rename(path)
    return new


@contextmanager
def _announced(workdir: WorkDir, listener: socket.socket) -> Iterator[str]:
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    path = observer_file(workdir)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps({"url": url}) + "\n")
    unfinished.rename(path)
    try:
        yield url
    finally:
        path.unlink(missing_ok=True)

"""The observer as the agent of management: takes clients' requests from the routers of its host, and answers them.

Requests about a node of another host go to the observer there, over an address of the mesh. Only operators and nodes
can use that address, so the user's name in the message is the one that the client's router put there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from addressing.management import (
    NODE_PROPERTY,
    OWNER_PROPERTY,
    REQUESTS_ADDRESS,
    USER_PROPERTY,
    management_address,
)
from addressing.operator_rights import OWNER, Operator, OperatorRights
from mesh.client.errors import MeshError
from mesh.deploy.control import RequestRefused, ask_async
from mesh.deploy.log_tail import TAIL_BYTES
from mesh.deploy.workdir import OBSERVER, WorkDir
from mesh.watch.access import LoginKind
from mesh.watch.management.answering import Question, answer, attributes_of, find
from mesh.watch.management.both_ends import BothEnds, SetElsewhere
from mesh.watch.management.config_types import LOG
from mesh.watch.management.entity_types import ManagedNode
from mesh.watch.management.protocol import (
    MAX_SHOWN_CHARS,
    ManagementError,
    ManagementRequest,
    Status,
    audited,
    encode_error,
    parse,
)
from mesh.watch.management.updates import change_of, named_module, operation_of
from mesh.watch.mesh_link import MeshLink
from mesh.watch.states import RUNNING, SILENT
from mesh.watch.write_targets import runs_here
from wire.codec.values import encode
from wire.delivery import Outcome, OutcomeCode
from wire.message import MalformedMessage, Message
from wire.message import encode as encode_message

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel

AT_ONCE: Final = 32
"""The most requests that are answered at the same time."""
LOOK_S: Final = 1.0
"""The time between two looks for routers of this host that are new."""
ANSWER_S: Final = 5.0
"""An answer whose client grants no credit for so long is dropped."""
FORWARD_S: Final = 2.0
SLICE_S: Final = 0.005
MAX_LOG_LINES: Final = 1000
MOST_KNOWN: Final = 200_000
_ROUTER_ROLES: Final = ("router", "edge")
_Result = TypeVar("_Result")


class ManagementAgent:
    """Answers requests to `$management` of all nodes of this host.

    ``shared``: the observer's link to the mesh, over which requests of other hosts come. ``link_to``: makes a link to a
    router of this host, by name, over which requests of the router's clients come. ``refresh``: has the model read what
    the nodes have recorded. ``record_change``: adds a line to the audit.
    ``set_cost_elsewhere``: sets a cost at a router of another host.
    """

    def __init__(
        self,
        topology: Topology,
        host: HostModel,
        shared: MeshLink,
        link_to: Callable[[str], MeshLink],
        refresh: Callable[[], object],
        record_change: Callable[[Mapping[str, Any]], Awaitable[None]],
        set_cost_elsewhere: SetElsewhere,
    ) -> None:
        self._topology = topology
        self._workdir = WorkDir(topology.work_dir)
        self._host = host
        self._shared = shared
        self._link_to = link_to
        self._refresh = refresh
        self._record_change = record_change
        self._both_ends = BothEnds(self._ask, partial(runs_here, host), set_cost_elsewhere)
        self._rights = OperatorRights(topology)
        self._links: dict[str, MeshLink] = {}
        self._served: set[str] = set()
        """Nodes of this host about which requests of other hosts are answered."""
        self._known: dict[str, dict[str, bool]] = {}
        """By name of an operator and address, whether the operator may view the address."""
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Keep a link to each router of this host, and answer what comes over them, until ``stopping`` is set."""
        try:
            while not stopping.is_set():
                await self._look(stopping)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await stopping.wait()
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, stopping: asyncio.Event) -> None:
        nodes = self._host.nodes.values()
        for name in [node.name for node in nodes if node.role in _ROUTER_ROLES and node.state == RUNNING]:
            if name not in self._links and name in self._topology.routers:
                link = self._links[name] = self._link_to(name)
                await link.serve(REQUESTS_ADDRESS, partial(self._on_request, link))
                self._start(link.run(stopping))
        for name in self._host.nodes.keys() - self._served:
            self._served.add(name)
            # An address that cannot be attached now is attached with the next connection.
            with suppress(MeshError):
                await self._shared.serve(management_address(name), partial(self._on_forwarded, self._shared))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "bug in this program: a task of management failed", "exception": error}
            )

    # Requests
    async def _on_request(self, link: MeshLink, outer: Message) -> None:
        await self._take(link, outer, may_forward=True)

    async def _on_forwarded(self, link: MeshLink, outer: Message) -> None:
        await self._take(link, outer, may_forward=False)

    async def _take(self, link: MeshLink, outer: Message, *, may_forward: bool) -> None:
        """Begin to answer a request; its delivery is settled then, and before that nobody else's request is taken."""
        try:
            request = parse(outer.body if isinstance(outer.body, bytes) else b"")
        except ManagementError as error:
            raise MalformedMessage(str(error)) from None
        # The router has checked this address, and nobody has checked what the request itself says.
        request = replace(request, reply_to=outer.reply_to)
        await self._places.acquire()
        self._start(self._reply(link, outer, request, may_forward=may_forward))

    async def _reply(self, link: MeshLink, outer: Message, request: ManagementRequest, *, may_forward: bool) -> None:
        try:
            node = str(outer.properties.get(NODE_PROPERTY, ""))
            try:
                if may_forward and node not in self._host.nodes and node in self._topology.node_names:
                    await self._forward(link, outer, node)
                    return
                data = await self._answer(node, request, self._operator(outer))
            except ManagementError as error:
                data = encode_error(request, error)
            if not await _is_taken(link.deliver(request.reply_to or "", data, ANSWER_S)):
                self._host.dropped_answers += 1
        finally:
            self._places.release()

    def _operator(self, outer: Message) -> Operator:
        if outer.properties.get(OWNER_PROPERTY) is True:
            return OWNER
        user = outer.properties.get(USER_PROPERTY)
        return self._rights.operator(None if user is None else str(user))

    async def _forward(self, link: MeshLink, outer: Message, node: str) -> None:
        error = ManagementError(
            Status.TIMEOUT,
            f"no observer answers for {node}: start one with `amqpmesh watch` on its host, unless the host is away",
        )
        try:
            given = Message(outer.body, reply_to=outer.reply_to, properties=dict(outer.properties))
            outcome = await link.deliver(management_address(node), encode_message(given), FORWARD_S)
        except MeshError:
            raise error from None
        if outcome is None or outcome.kind is not OutcomeCode.ACCEPTED:
            raise error

    async def _answer(self, node: str, request: ManagementRequest, operator: Operator) -> bytes:
        if not request.number("offset"):
            # A client that asks for connections sees its own. Later pages are of the same look.
            self._refresh()
        question = self._question(node, request, operator)
        asked = request.text("entityType") or request.text("type")
        if asked in (None, LOG.name, LOG.short_name):
            question = replace(question, view=replace(question.view, log_levels=await self._log_levels(node)))
        if not operator.sees_mesh:
            raise ManagementError(Status.FORBIDDEN, f"{operator.name} may not see anything of the mesh")
        match request.operation:
            case "UPDATE":
                return await self._update(question)
            case "GET-LOG":
                return await self._log(question)
            case _:
                return await _in_slices(answer(question))

    def _question(self, node: str, request: ManagementRequest, operator: Operator) -> Question:
        """Raises ManagementError for a node of which this observer cannot tell anything."""
        found = self._host.nodes.get(node)
        names: Collection[str] = self._topology.node_names
        if found is None or node not in names:
            raise ManagementError(Status.NOT_FOUND, f"no node {node!r} is here: expected one of {', '.join(names)}")
        if found.is_over:
            raise ManagementError(
                Status.UNAVAILABLE, f"{node} does not run: it is {found.state}, and wrote last {found.age_s:.0f} s ago"
            )
        note = f"{node} has been silent for {found.age_s:.0f} s" if found.state == SILENT else ""
        known = self._known.setdefault(operator.name, {})
        if len(known) > MOST_KNOWN:
            known.clear()
        return Question(request, ManagedNode(self._host, found, self._topology), operator, note, known)

    async def _log_levels(self, node: str) -> dict[str, str]:
        # A node that does not answer has the level that nodes begin with, as far as anybody knows.
        with suppress(OSError):
            return dict(await ask_async(self._workdir.control_socket(node), "log_levels"))
        return {"": "info"}

    # Changes
    async def _update(self, question: Question) -> bytes:
        found = named_module(question)
        type_, state = found if found is not None else await _in_slices(find(question))
        attributes = attributes_of(question.view, type_, state)
        target = f"{question.view.name}/{attributes['identity']}"
        try:
            change = change_of(question, type_, state)
        except ManagementError as error:
            asked = {"type": type_.name, **question.request.body}
            await self._record(question, target, operation_of(type_), asked, error)
            raise
        if change is None:
            return question.ok(encode(attributes))
        before = {name: attributes[name] for name in change.changed}
        try:
            await self._both_ends.make(question.view.name, change, question.operator)
        except ManagementError as error:
            await self._record(question, target, change.op, change.arguments, error, before=before)
            raise
        await self._record(question, target, change.op, change.arguments, before=before, after=change.changed)
        return question.ok(encode(attributes | change.changed))

    async def _ask(self, node: str, op: str, arguments: Mapping[str, Any]) -> Any:
        try:
            return await ask_async(self._workdir.control_socket(node), op, **arguments)
        except RequestRefused as error:
            is_unknown = str(error).startswith("unknown op")
            raise ManagementError(
                Status.NOT_IMPLEMENTED if is_unknown else Status.BAD_REQUEST, f"{node} refused the change: {error}"
            ) from None
        except OSError as error:
            raise ManagementError(Status.UNAVAILABLE, f"{node} does not answer: {error or 'timed out'}") from None

    async def _record(
        self,
        question: Question,
        target: str,
        op: str,
        arguments: Mapping[str, Any],
        error: ManagementError | None = None,
        **more: Any,
    ) -> None:
        """Add a change, or what was refused, to the audit, as the interface over HTTP does."""
        entry = {
            "at": time.time(),
            "who": question.operator.name,
            "is_owner": question.operator.is_owner,
            "login": LoginKind.MANAGEMENT.value,
            "operation": op.replace("_", "-"),
            "target": target,
            "arguments": {str(name)[:MAX_SHOWN_CHARS]: audited(value) for name, value in arguments.items()},
            **more,
            "outcome": "done" if error is None else "refused",
            "status": int(Status.OK if error is None else error.status),
        }
        await self._record_change(entry if error is None else {**entry, "error": str(error)})

    # Logs
    async def _log(self, question: Question) -> bytes:
        if not question.operator.views_all:
            raise ManagementError(
                Status.FORBIDDEN,
                f"{question.operator.name} may not see events: expected a user with `view: ['#']` in the topology",
            )
        limit = question.request.number("limit") or MAX_LOG_LINES
        path = self._workdir.log_file(question.view.name)
        lines = await asyncio.to_thread(log_lines, path, min(limit, MAX_LOG_LINES))
        return question.ok(encode(lines))


def log_lines(path: Path, limit: int) -> list[list[Any]]:
    """Return the last events in a log file, the newest last, as Dispatch has lines of a log.

    Each is module, level, text, source file, line, and time in seconds since 1970; the module is the name of the event,
    and there is neither source file nor line.
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            start = max(0, file.tell() - 4 * TAIL_BYTES)
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()[1 if start else 0 :]
    except OSError:
        return []
    found = [each for each in map(_log_line, lines) if each is not None]
    return found[-limit:]


def _log_line(line: str) -> list[Any] | None:
    try:
        event = json.loads(line)
        at = datetime.fromisoformat(event.pop("ts")).timestamp()
        level, name = str(event.pop("level")), str(event.pop("event"))
        event.pop("node", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    text = " ".join(f"{key}={value}" for key, value in event.items())
    return [name, level, text, None, None, int(at)]


async def _is_taken(delivery: Awaitable[Outcome | None]) -> bool:
    """Return whether a client accepted an answer: False if the client has gone, or grants no credit."""
    with suppress(MeshError):
        outcome = await delivery
        return outcome is not None and outcome.kind is OutcomeCode.ACCEPTED
    return False


async def _in_slices(steps: Generator[None, None, _Result]) -> _Result:
    """Return the result of ``steps``, a generator; the event loop has a turn after each SLICE_S of work."""
    until = time.monotonic() + SLICE_S
    try:
        while True:
            next(steps)
            if time.monotonic() >= until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_S
    except StopIteration as end:
        result: _Result = end.value
        return result


def container_id(router: str) -> str:
    """Return the container-id of the connection over which the observer gets the requests of ``router``."""
    return f"{OBSERVER}-{router}"

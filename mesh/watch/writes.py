"""The changes that operators ask for over HTTP: each is read, judged, made once, and told to the audit.

`mesh.watch.write_operations` has the table of changes. A request passes these steps, and a refusal at any of them is in
the audit, too: its form (400), the entity (404) and its node (501, 502), the right (403), what the requester expects of
the entity (409), the key (409); then the change is made, or counted if it is a dry run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from mesh.watch.answers import as_json, requester_of
from mesh.watch.audit import AuditLog
from mesh.watch.idempotency import KeptAnswer, KeyReused, KeysExhausted, WriteKeys
from mesh.watch.node_writes import NodeWrites
from mesh.watch.queue_writes import QueuePlace, QueueWrites
from mesh.watch.states import GETTERS
from mesh.watch.write_operations import WRITES, NeededRight, WriteOperation
from mesh.watch.write_request import KEY_HEADER, EditedMessage, WriteRefused, WriteRequest, parse_write
from mesh.watch.write_targets import body_of, find, id_of, path_of
from recording.entities import CONNECTION, LINK, NEIGHBOR, NODE, QUEUE, Entity

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from addressing.topology.model import Topology
    from mesh.watch.access import Requester
    from mesh.watch.host_model import HostModel
    from mesh.watch.mesh_requests import MeshRequests
    from mesh.watch.visible_rows import RowsByOperator

MAX_AT_ONCE: Final = 16
"""The most changes that are under way."""
FAILED: Final = KeptAnswer(
    500, {"error": "the change failed, or the observer ended: look whether it was made", "is_uncertain": True}
)
INTERRUPTED: Final = KeptAnswer(
    409,
    {"error": "the observer ended while this change was under way: look whether it was made, and give another change "
              "another key", "is_uncertain": True},
)  # fmt: skip


_TOLD: Final[dict[Entity, tuple[str, ...]]] = {
    QUEUE: ("address", "subscriber"),
    CONNECTION: ("user", "container", "remote_address"),
    LINK: ("address", "user", "name"),
    NEIGHBOR: ("neighbor",),
    NODE: ("role",),
}
"""By entity, the fields by which a line of the audit says what the id stood for."""


@dataclass(slots=True)
class _Attempt:
    """A request for a change on its way, with what its line of the audit says so far."""

    operation: WriteOperation
    id: str
    requester: Requester
    request: WriteRequest | None = None
    what: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


class MeshWrites:
    """The changes of the mesh of ``topology``, whose nodes on this host ``host`` has; ``rows``: who may see what.

    ``on_trouble`` is called with a sentence when the audit, or the end of a change, cannot be written to the disk.
    """

    def __init__(
        self,
        topology: Topology,
        host: HostModel,
        rows: RowsByOperator,
        requests: MeshRequests,
        keys: WriteKeys,
        audit: AuditLog,
        on_trouble: Callable[[str], None],
    ) -> None:
        self._topology, self._host, self._rows, self._keys, self._audit = topology, host, rows, keys, audit
        self._on_trouble = on_trouble
        self.queues = QueueWrites(topology, requests)
        self._nodes = NodeWrites(topology, requests)
        self._under_way: set[asyncio.Task[KeptAnswer]] = set()

    def routes(self) -> list[Route]:
        return [
            Route(path_of(operation.path, operation.entity), self._endpoint(operation), methods=[operation.method])
            for operation in WRITES
        ]

    async def settle_interrupted(self) -> None:
        """Tell the audit of changes that the end of an earlier observer has interrupted.

        Raises OSError if their keys cannot be written; whoever gives one of them is refused all the same.
        """
        for what in self._keys.interrupted():
            with self._disk_trouble():
                await self._audit.append({**what, "outcome": "interrupted", "status": INTERRUPTED.status})
        self._keys.settle_interrupted(INTERRUPTED)

    def _endpoint(self, operation: WriteOperation) -> Any:
        async def endpoint(request: Request) -> Response:
            attempt = _Attempt(operation, id_of(request), requester_of(request))
            answer = await self._answer(attempt, request)
            return as_json(answer.content, answer.status)

        return endpoint

    async def _answer(self, attempt: _Attempt, request: Request) -> KeptAnswer:
        if len(self._under_way) >= MAX_AT_ONCE:
            return KeptAnswer(503, {"error": f"{MAX_AT_ONCE} changes are under way, which is the most: try again"})
        try:
            read = attempt.request = parse_write(
                attempt.operation,
                attempt.id,
                request.headers,
                request.query_params.multi_items(),
                await body_of(request),
            )
            state = self._found(attempt, read)
        except WriteRefused as refused:
            return await self._refused(attempt, refused)
        # A client that goes away does not stop a change halfway.
        task = asyncio.create_task(self._perform(attempt, read, state))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    # Judgement
    def _found(self, attempt: _Attempt, read: WriteRequest) -> Any:
        """Return the state of the entity. Raises WriteRefused if there is none, or the requester may not change it."""
        entity, operator = attempt.operation.entity, attempt.requester.operator
        if attempt.operation.right is NeededRight.MESH and not operator.manages_mesh:
            raise WriteRefused(403, f"to {attempt.operation.name.replace('-', ' ')} needs the right `manage` of #")
        node = attempt.id.partition("/")[0]
        found = find(self._host, self._rows.of(operator), self._topology, entity, attempt.id)
        attempt.what = {name: value for name in _TOLD[entity] if (value := GETTERS[entity][name](found)) is not None}
        if entity is QUEUE:
            place = self.place(found)
            for address in (place.mesh_address, *self.queues.other_addresses(read)):
                if not operator.may_manage(address):
                    raise WriteRefused(403, f"you have no right `manage` of {address!r}, which this change needs")
        message = read.arguments.get("message")
        if message is not None and message.user_id not in (None, operator.name) and not operator.is_owner:
            raise WriteRefused(403, f"a message of yours is from {operator.name}, or from no user", "message.user_id")
        for name, value in read.expect.items():
            now = GETTERS[entity][name](found)
            if now != value:
                raise WriteRefused(
                    409, f"{name} of {entity.name} {attempt.id} is {now!r} now, and not {value!r} as expected: the "
                    f"{entity.name} may be another one since {node} started again", f"expect.{name}"
                )  # fmt: skip
        return found

    def place(self, state: Any) -> QueuePlace:
        text = state.address_text or ""
        return QueuePlace(state.node.name, text, self._rows.mesh_name(state.node.name, text), state.subscriber)

    # Change
    async def _perform(self, attempt: _Attempt, request: WriteRequest, state: Any) -> KeptAnswer:
        try:
            if request.is_dry_run:
                return await self._preview(attempt, request, state)
            assert request.key is not None
            # No user's name has a slash.
            who = "/owner" if attempt.requester.operator.is_owner else attempt.requester.operator.name
            kept = await self._keys.begin(who, request.key, request.digest, self._entry(attempt))
        except WriteRefused as refused:
            return await self._refused(attempt, refused)
        except KeyReused:
            sentence = "the key was given before with another request: a new change needs a new one"
            return await self._refused(attempt, WriteRefused(409, sentence, KEY_HEADER))
        except KeysExhausted:
            sentence = "too many changes of yours within 24 h: their keys are still kept"
            return await self._refused(attempt, WriteRefused(429, sentence))
        except OSError as error:
            return await self._refused(
                attempt, WriteRefused(503, f"cannot keep the key of the change: {error.strerror}")
            )
        if kept is not None:
            await self._tell(attempt, "repeated", kept.status)
            return kept
        return await self._make(attempt, request, state, who)

    async def _make(self, attempt: _Attempt, request: WriteRequest, state: Any, who: str) -> KeptAnswer:
        assert request.key is not None
        answer, is_kept = FAILED, True
        try:
            answer, is_kept = await self._changed(attempt, request, state)
            return answer
        finally:
            # Also after a failure that nobody has foreseen the key has an answer, and the change is in the audit.
            with self._disk_trouble():
                await self._keys.end(who, request.key, answer, is_kept=is_kept)
            if answer is FAILED:
                await self._tell(attempt, "failed", answer.status)

    async def _changed(self, attempt: _Attempt, request: WriteRequest, state: Any) -> tuple[KeptAnswer, bool]:
        """Make the change; return the answer, and whether it holds for the key from now on."""
        try:
            done = await self._run(attempt, request, state)
        except WriteRefused as refused:
            answer = await self._refused(attempt, refused)
            return answer, refused.is_uncertain
        content = {"done": done, "before": attempt.before, "after": attempt.after}
        answer = KeptAnswer(200, {name: value for name, value in content.items() if value is not None})
        await self._tell(attempt, "done", answer.status, done=done)
        return answer, True

    async def _run(self, attempt: _Attempt, request: WriteRequest, state: Any) -> dict[str, Any]:
        node = attempt.id.partition("/")[0]
        if request.operation.entity is not QUEUE:
            attempt.before = await self._nodes.before(node, request, state)
            done = await self._nodes.run(node, request, state, attempt.requester.operator.name)
            attempt.after = await self._nodes.after(node, request)
            return done
        place = self.place(state)
        attempt.before = await self._depth(place)
        done = await self.queues.run(place, request, self._routers())
        try:
            attempt.after = await self._depth(place)
        except WriteRefused:
            attempt.after = None
        return done

    async def _depth(self, place: QueuePlace) -> dict[str, Any]:
        depth = await self.queues.depth(place)
        if depth is None:
            return {"exists": False}
        return {"messages": depth}

    async def _preview(self, attempt: _Attempt, request: WriteRequest, state: Any) -> KeptAnswer:
        if request.operation.entity is QUEUE:
            place = self.place(state)
            attempt.before = await self._depth(place)
            would = await self.queues.preview(place, request, int(attempt.before.get("messages", 0)))
        else:
            attempt.before = await self._nodes.before(attempt.id.partition("/")[0], request, state)
            would = self._nodes.preview(request, state)
        await self._tell(attempt, "counted", 200)
        return KeptAnswer(200, {"dry_run": True, "would": would, "before": attempt.before})

    def _routers(self) -> tuple[str, ...]:
        """Return the routers of the mesh, those that run on this host first."""
        names = [name for name, router in self._topology.routers.items() if not router.is_edge]
        running = {name for name, node in self._host.nodes.items() if not node.is_over}
        return tuple(sorted(names, key=lambda name: name not in running))

    # Audit
    async def _refused(self, attempt: _Attempt, refused: WriteRefused) -> KeptAnswer:
        outcome = "uncertain" if refused.is_uncertain else "refused"
        await self._tell(attempt, outcome, refused.status, error=refused.sentence)
        return KeptAnswer(refused.status, refused.to_map())

    async def _tell(self, attempt: _Attempt, outcome: str, status: int, **more: Any) -> None:
        with self._disk_trouble():
            await self._audit.append({**self._entry(attempt), "outcome": outcome, "status": status, **more})

    @contextmanager
    def _disk_trouble(self) -> Iterator[None]:
        """Let what was done be answered, though it cannot be written."""
        try:
            yield
        except OSError as error:
            self._on_trouble(f"{error.filename or 'the audit'}: {error.strerror}")

    def _entry(self, attempt: _Attempt) -> dict[str, Any]:
        request, requester = attempt.request, attempt.requester
        entry = {
            "at": time.time(),
            "who": requester.operator.name,
            "is_owner": requester.operator.is_owner,
            "login": requester.login.value,
            "from": requester.peer,
            "operation": attempt.operation.name,
            "target": attempt.id,
            "what": attempt.what,
            "arguments": None if request is None else _without_bodies(request.arguments),
            "dry_run": None if request is None else request.is_dry_run,
            "key": None if request is None else request.key,
            "before": attempt.before,
            "after": attempt.after,
        }
        return {name: value for name, value in entry.items() if value is not None}


def _without_bodies(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``arguments`` as the audit shows them: of a message only its size, as it may have secrets."""
    return {
        name: {"bytes": len(value.encoded)} if isinstance(value, EditedMessage) else value
        for name, value in arguments.items()
    }

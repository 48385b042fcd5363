"""The changes that operators ask for over HTTP: each is read, judged, made once, and told to the audit.

`mesh.watch.write_operations` has the table of changes. A request passes these steps, and a refusal at any of them is in
the audit, too: its form (400), the entity (404) and its node (501, 502), the right (403), what the requester expects of
the entity (409), the key (409); then the change is made, or counted if it is a dry run.

A change of a node of another host passes these steps there, by `mesh.watch.host_changes`; here it is only read. Its
line is in the audit of that host, and in that of this host with `host`, which names the other one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.routing import Route

from addressing.operator_rights import OperatorRights
from mesh.watch.access import LoginKind, Requester
from mesh.watch.answers import as_json, requester_of
from mesh.watch.audit import AuditLog
from mesh.watch.decision_recordings import DecisionRecordings
from mesh.watch.host_changes import ChangeTickets, named, requester_in
from mesh.watch.idempotency import KeptAnswer, KeyReused, KeysExhausted, WriteKeys
from mesh.watch.mesh_requests import SHOWS
from mesh.watch.node_writes import NodeWrites
from mesh.watch.queue_writes import QueuePlace, QueueWrites
from mesh.watch.shares import Shares
from mesh.watch.states import GETTERS
from mesh.watch.write_attempt import FIELDS_TOLD, WriteAttempt
from mesh.watch.write_operations import WRITES, NeededRight, WriteOperation
from mesh.watch.write_request import (
    CONTENT_TYPE,
    KEY_HEADER,
    WriteRefused,
    WriteRequest,
    parse_write,
)
from mesh.watch.write_targets import body_of, find, id_of, path_of, runs_here
from recording.entities import ADDRESS, NEIGHBOR, QUEUE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology
    from mesh.watch.host_changes import HostChanges
    from mesh.watch.host_model import HostModel
    from mesh.watch.mesh_requests import MeshRequests
    from mesh.watch.visible_rows import RowsByOperator

MAX_AT_ONCE: Final = 16
"""The most changes that are made here at the same time, and the most that wait for another host."""
MAX_AT_ONCE_OF_ONE: Final = 8
FAILED: Final = KeptAnswer(
    500, {"error": "the change failed, or the observer ended: look whether it was made", "is_uncertain": True}
)
INTERRUPTED: Final = KeptAnswer(
    409,
    {"error": "the observer ended while this change was under way: look whether it was made, and give another change "
              "another key", "is_uncertain": True},
)  # fmt: skip


_BY_NAME: Final = {operation.name: operation for operation in WRITES}


class MeshWrites:
    """The changes of the mesh of ``topology``, whose nodes on this host ``host`` has; ``rows``: who may see what.

    ``elsewhere`` carries changes to other hosts; None where there is no other host.

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
        elsewhere: HostChanges | None = None,
    ) -> None:
        self._topology, self._host, self._rows, self._keys, self._audit = topology, host, rows, keys, audit
        self._on_trouble, self._elsewhere = on_trouble, elsewhere
        self._rights, self._tickets = OperatorRights(topology), ChangeTickets()
        self.queues = QueueWrites(topology, requests)
        self._nodes = NodeWrites(topology, requests)
        self.decisions = DecisionRecordings(topology, host, requests)
        self._under_way: set[asyncio.Task[KeptAnswer]] = set()
        self._made_here = Shares("changes", MAX_AT_ONCE, MAX_AT_ONCE_OF_ONE)
        self._made_elsewhere = Shares("changes", MAX_AT_ONCE, MAX_AT_ONCE_OF_ONE)

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
            attempt = WriteAttempt(operation, id_of(request), requester_of(request))
            answer = await self._answer(attempt, request)
            return as_json(answer.content, answer.status)

        return endpoint

    async def _answer(self, attempt: WriteAttempt, request: Request) -> KeptAnswer:
        self._shares_of(attempt).check(attempt.requester)
        try:
            body = await body_of(request)
        except WriteRefused as refused:
            return await self._refused(attempt, refused)
        return await self._take(attempt, request.headers, request.query_params.multi_items(), body)

    async def _take(
        self, attempt: WriteAttempt, headers: Mapping[str, str], parameters: Sequence[tuple[str, str]], body: bytes
    ) -> KeptAnswer:
        """Return the answer to a change. Raises HTTPException if too many changes are under way."""
        try:
            read = attempt.request = parse_write(attempt.operation, attempt.id, headers, parameters, body)
            operator = attempt.requester.operator
            if attempt.operation.right is NeededRight.MESH and not operator.manages_mesh:
                raise WriteRefused(403, f"to {attempt.operation.name.replace('-', ' ')} needs the right `manage` of #")
            if self._is_carried_on(attempt):
                work = self._carry(attempt, read, body)
            else:
                work = self._perform(attempt, read, self._found(attempt, read))
        except WriteRefused as refused:
            return await self._refused(attempt, refused)
        # The first end of a cost has its share at the host that waits for this one, which may be full of such changes.
        if not attempt.is_one_end:
            work = self._shared(self._shares_of(attempt).taken(attempt.requester), work)
        # A client that goes away does not stop a change halfway.
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _shared(self, share: AbstractContextManager[None], work: Coroutine[Any, Any, KeptAnswer]) -> KeptAnswer:
        try:
            with share:
                return await work
        finally:
            work.close()

    def _shares_of(self, attempt: WriteAttempt) -> Shares:
        """Return the shares that limit the change: those at another host and those here are limited apart."""
        return self._made_elsewhere if self._is_carried_on(attempt) else self._made_here

    def _is_carried_on(self, attempt: WriteAttempt) -> bool:
        return attempt.asked_at is None and self.is_elsewhere(attempt.node)

    # Other hosts
    def is_elsewhere(self, node: str) -> bool:
        """Tell whether ``node`` does not run here, and another host has told of it."""
        return self._elsewhere is not None and not runs_here(self._host, node) and self._elsewhere.has(node)

    async def answer_offer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer another observer, which asks whether a change of a node is taken here."""
        node = str(request["node"])
        if not runs_here(self._host, node):
            return {"error": f"{node} does not run on this host"}
        return {"ticket": self._tickets.give()}

    async def answer_change(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make the change that another observer was asked for, and return what it needs to answer."""
        attempt = WriteAttempt(
            _BY_NAME[request["operation"]], str(request["id"]), requester_in(request, self._rights),
            str(request["asked_at"]), request.get("is_one_end") is True,
        )  # fmt: skip
        key = {} if request["key"] is None else {KEY_HEADER.lower(): str(request["key"])}
        parameters = [("dry_run", "true")] if request["is_dry_run"] else []
        body = str(request["body"]).encode()
        if self._tickets.take(request["ticket"]):
            try:
                answer = await self._take(attempt, {"content-type": CONTENT_TYPE, **key}, parameters, body)
            except HTTPException as refused:
                answer = KeptAnswer(refused.status_code, {"error": refused.detail})
        else:
            answer = KeptAnswer(503, {"error": "nothing was changed: the change came too late to its host: try again"})
        return {"status": answer.status, "content": answer.content, "outcome": attempt.outcome}

    async def _carry(self, attempt: WriteAttempt, request: WriteRequest, body: bytes) -> KeptAnswer:
        assert self._elsewhere is not None
        change = {
            **named(attempt.requester),
            "operation": request.operation.name,
            "id": attempt.id,
            "is_dry_run": request.is_dry_run,
            "key": request.key,
            "body": body.decode(),
        }
        try:
            carried = await self._elsewhere.carry(attempt.node, change)
        except WriteRefused as refused:
            return await self._refused(attempt, refused)
        attempt.host, said = carried.host, carried.answer.content
        attempt.before, attempt.after = said.get("before"), said.get("after")
        more = {name: said[name] for name in ("done", "error") if name in said}
        await self._tell(attempt, carried.outcome, carried.answer.status, **more)
        return carried.answer

    async def set_cost_elsewhere(self, operator: Operator, node: str, neighbor: str, cost: int) -> int:
        """Set the cost at the router ``node`` of another host, for an operator whom a router of the mesh has checked.

        Returns the cost before. Raises WriteRefused.
        """
        if not self.is_elsewhere(node):
            raise WriteRefused(502, f"{node} does not run on this host, and no observer of another host has told of it")
        requester = Requester(operator, LoginKind.MANAGEMENT)
        return await self._set_end_elsewhere(requester, secrets.token_hex(16), node, neighbor, cost)

    async def _set_end_elsewhere(self, requester: Requester, key: str, node: str, neighbor: str, cost: int) -> int:
        assert self._elsewhere is not None
        change = {
            **named(requester),
            "operation": "cost",
            "id": f"{node}/{neighbor}",
            "is_dry_run": False,
            "is_one_end": True,
            "key": f"other-end-{key}",
            "body": json.dumps({"cost": cost}),
        }
        try:
            said = (await self._elsewhere.carry(node, change)).answer
        except WriteRefused as refused:
            if not refused.is_uncertain:
                raise
            raise WriteRefused(
                504, f"unknown whether the cost at {node}, on another host, was set: look at it, and set it again by a "
                "change with another key", is_uncertain=True,
            ) from None  # fmt: skip
        if said.status != 200:
            raise WriteRefused(said.status, str(said.content.get("error")), is_uncertain="is_uncertain" in said.content)
        return int(said.content["done"]["cost_before"])

    async def _record(self, attempt: WriteAttempt, request: WriteRequest, address: str) -> dict[str, Any]:
        """Have the routers here, and those of the other hosts, record the address. Raises WriteRefused if none does."""
        seconds = request.arguments["seconds"]
        count, refused = await self.decisions.begin(address, seconds)
        if self._elsewhere is not None and not attempt.is_one_end:
            away = set(self._topology.routers).difference(self.decisions.routers)
            asked = (self._record_elsewhere(attempt, node, seconds) for node in self._elsewhere.one_of_each(away))
            for there in await asyncio.gather(*asked):
                if isinstance(there, WriteRefused):
                    refused.append(there)
                else:
                    count += there
        if not count:
            raise refused[0] if refused else WriteRefused(502, f"no router that records {address!r} runs. {SHOWS}")
        why = [each.sentence for each in refused]
        return {"routers": count, "seconds": seconds, **({"not_recorded": why} if why else {})}

    async def _record_elsewhere(self, attempt: WriteAttempt, node: str, seconds: int) -> int | WriteRefused:
        """Have the routers of the host of ``node`` record the address; return how many do, or why none does."""
        assert self._elsewhere is not None
        assert attempt.request is not None
        assert attempt.request.key is not None
        change = {
            **named(attempt.requester),
            "operation": attempt.operation.name,
            "id": attempt.id,
            "is_dry_run": False,
            "is_one_end": True,
            "key": f"part-{hashlib.sha256(attempt.request.key.encode()).hexdigest()[:32]}",
            "body": json.dumps({"seconds": seconds}),
        }
        try:
            said = (await self._elsewhere.carry(node, change)).answer
        except WriteRefused as refused:
            return refused
        if said.status != 200:
            return WriteRefused(said.status, f"the host of {node}: {said.content.get('error')}")
        return int(said.content["done"]["routers"])

    # Judgement
    def _found(self, attempt: WriteAttempt, read: WriteRequest) -> Any:
        """Return the state of the entity. Raises WriteRefused if there is none, or the requester may not change it."""
        entity, operator = attempt.operation.entity, attempt.requester.operator
        if entity is ADDRESS:
            found: Any = self.decisions.address(operator, attempt.id)
            getters: Mapping[str, Callable[[Any], Any]] = {
                name: attrgetter(name) for name in attempt.operation.expected
            }
            if not operator.may_manage(found.id):
                raise WriteRefused(403, f"you have no right `manage` of {found.id!r}, which this change needs")
        else:
            found = find(self._host, self._rows.of(operator), self._topology, entity, attempt.id)
            getters = GETTERS[entity]
        attempt.what = {name: value for name in FIELDS_TOLD[entity] if (value := getters[name](found)) is not None}
        if entity is QUEUE:
            place = self.place(found)
            for address in (place.mesh_address, *self.queues.other_addresses(read)):
                if not operator.may_manage(address):
                    raise WriteRefused(403, f"you have no right `manage` of {address!r}, which this change needs")
        message = read.arguments.get("message")
        if message is not None and message.user_id not in (None, operator.name) and not operator.is_owner:
            raise WriteRefused(403, f"a message of yours is from {operator.name}, or from no user", "message.user_id")
        for name, value in read.expect.items():
            now = getters[name](found)
            if now != value:
                raise WriteRefused(
                    409, f"{name} of {entity.name} {attempt.id} is {now!r} now, and not {value!r} as expected: the "
                    f"{entity.name} may be another one since {attempt.node} started again", f"expect.{name}"
                )  # fmt: skip
        return found

    def place(self, state: Any) -> QueuePlace:
        text = state.address_text or ""
        return QueuePlace(state.node.name, text, self._rows.mesh_name(state.node.name, text), state.subscriber)

    # Change
    async def _perform(self, attempt: WriteAttempt, request: WriteRequest, state: Any) -> KeptAnswer:
        try:
            if request.is_dry_run:
                return await self._preview(attempt, request, state)
            assert request.key is not None
            # No user's name has a slash.
            who = "/owner" if attempt.requester.operator.is_owner else attempt.requester.operator.name
            kept = await self._keys.begin(who, request.key, request.digest, attempt.entry())
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

    async def _make(self, attempt: WriteAttempt, request: WriteRequest, state: Any, who: str) -> KeptAnswer:
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

    async def _changed(self, attempt: WriteAttempt, request: WriteRequest, state: Any) -> tuple[KeptAnswer, bool]:
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

    async def _run(self, attempt: WriteAttempt, request: WriteRequest, state: Any) -> dict[str, Any]:
        node = attempt.node
        if request.operation.entity is ADDRESS:
            return await self._record(attempt, request, state.id)
        if request.operation.entity is NEIGHBOR:
            attempt.before = await self._nodes.before(node, request, state)
            done = await self._nodes.set_cost(request, state, self._other_end(attempt, state.neighbor))
            attempt.after = await self._nodes.after(node, request)
            return done
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

    def _other_end(self, attempt: WriteAttempt, neighbor: str) -> Callable[[int], Awaitable[int]] | None:
        """Return a function that sets a cost at the other router and returns the cost before; None for one end."""
        node = attempt.node
        if attempt.is_one_end:
            return None
        if self.is_elsewhere(neighbor):
            assert attempt.request is not None
            assert attempt.request.key is not None
            # A key of its own: the change that has the requester's key may be at that host, too.
            key = hashlib.sha256(attempt.request.key.encode()).hexdigest()[:32]
            return lambda cost: self._set_end_elsewhere(attempt.requester, key, neighbor, node, cost)
        return lambda cost: self._nodes.set_end(neighbor, node, cost)

    async def _depth(self, place: QueuePlace) -> dict[str, Any]:
        depth = await self.queues.depth(place)
        if depth is None:
            return {"exists": False}
        return {"messages": depth}

    async def _preview(self, attempt: WriteAttempt, request: WriteRequest, state: Any) -> KeptAnswer:
        if request.operation.entity is ADDRESS:
            would = {"routers": len(self._topology.routers), **request.arguments, "at_most": True}
        elif request.operation.entity is QUEUE:
            place = self.place(state)
            attempt.before = await self._depth(place)
            would = await self.queues.preview(place, request, int(attempt.before.get("messages", 0)))
        else:
            attempt.before = await self._nodes.before(attempt.node, request, state)
            would = self._nodes.preview(request, state)
        await self._tell(attempt, "counted", 200)
        return KeptAnswer(200, {"dry_run": True, "would": would, "before": attempt.before})

    def _routers(self) -> tuple[str, ...]:
        """Return the routers of the mesh, those that run on this host first."""
        names = [name for name, router in self._topology.routers.items() if not router.is_edge]
        running = {name for name, node in self._host.nodes.items() if not node.is_over}
        return tuple(sorted(names, key=lambda name: name not in running))

    # Audit
    async def _refused(self, attempt: WriteAttempt, refused: WriteRefused) -> KeptAnswer:
        outcome = "uncertain" if refused.is_uncertain else "refused"
        await self._tell(attempt, outcome, refused.status, error=refused.sentence)
        return KeptAnswer(refused.status, refused.to_map())

    async def _tell(self, attempt: WriteAttempt, outcome: str, status: int, **more: Any) -> None:
        attempt.outcome = outcome
        with self._disk_trouble():
            await self._audit.append({**attempt.entry(), "outcome": outcome, "status": status, **more})

    @contextmanager
    def _disk_trouble(self) -> Iterator[None]:
        """Let what was done be answered, though it cannot be written."""
        try:
            yield
        except OSError as error:
            self._on_trouble(f"{error.filename or 'the audit'}: {error.strerror}")

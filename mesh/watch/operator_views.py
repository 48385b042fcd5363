"""What operators see beside the entities: the messages of a queue, the audit, and the events in the logs of nodes.

What another host has is asked of the observer there: the messages of a queue there, the events of `node`, if it runs
there, and the events and the audit of `host`. The rights are judged at the host that answers.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from addressing.operator_rights import OperatorRights
from mesh.watch.answers import as_json, refuse_unless, requester_of
from mesh.watch.audit import parse_audit_query, whole_number
from mesh.watch.decision_recordings import DEFAULT_PAGE as DEFAULT_DECISIONS
from mesh.watch.decision_recordings import page_of, parse_cursor
from mesh.watch.host_changes import named, requester_in
from mesh.watch.idempotency import KeptAnswer
from mesh.watch.query import QueryError
from mesh.watch.shares import Shares
from mesh.watch.write_operations import MAX_NUMBER
from mesh.watch.write_request import WriteRefused
from mesh.watch.write_targets import find, id_of, path_of
from recording.entities import ADDRESS, QUEUE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from addressing.topology.model import Topology
    from mesh.watch.access import Requester
    from mesh.watch.audit import AuditLog
    from mesh.watch.host_changes import HostChanges
    from mesh.watch.host_model import HostModel
    from mesh.watch.node_events import NodeEvents
    from mesh.watch.other_hosts import HostHandler
    from mesh.watch.visible_rows import RowsByOperator
    from mesh.watch.writes import MeshWrites

Parameters = list[tuple[str, str]]
MESSAGES: Final = "/api/queues/{id}/messages"
DECISIONS: Final = "/api/addresses/{id}/decisions"
AUDIT: Final = "/api/audit"
EVENTS: Final = "/api/events"
HOST: Final = "host"
"""The parameter that names a host, by the id that entity `node` has in `host`."""
_NEEDS: Final = {"audit": "the audit needs `view` of #", "events": "events of nodes need `view` of #"}
MAX_SEARCH_CHARS: Final = 256
MAX_PAGE: Final = 100
"""The most messages of a page."""
DEFAULT_PAGE: Final = 50
MAX_BODY_BYTES: Final = 65_536
DEFAULT_BODY_BYTES: Final = 4096
MAX_BROWSES: Final = 16
"""The most pages of messages that brokers are asked for; for a search, a broker reads the whole queue."""
MAX_BROWSES_OF_ONE: Final = 4
DECISION_PARAMETERS: Final = ("after", "limit")
BROWSE_PARAMETERS: Final = ("after", "limit", "search", "bodies", "body_bytes")


class OperatorViews:
    """``writes`` asks the brokers for messages; ``audit`` and ``events`` have the rest of this host.

    ``elsewhere`` asks other hosts; None where there is no other host.
    """

    def __init__(
        self,
        topology: Topology,
        host: HostModel,
        rows: RowsByOperator,
        writes: MeshWrites,
        audit: AuditLog,
        events: NodeEvents,
        elsewhere: HostChanges | None = None,
    ) -> None:
        self._topology, self._host, self._rows = topology, host, rows
        self._writes, self._audit, self._events, self._elsewhere = writes, audit, events, elsewhere
        self._rights = OperatorRights(topology)
        self._browses = Shares("pages of messages", MAX_BROWSES, MAX_BROWSES_OF_ONE)

    def routes(self) -> list[Route]:
        return [
            Route(path_of(MESSAGES, QUEUE), self._messages),
            Route(path_of(DECISIONS, ADDRESS), self._decisions),
            Route(AUDIT, self._page_of("audit")),
            Route(EVENTS, self._page_of("events")),
        ]

    # Messages
    async def _messages(self, request: Request) -> Response:
        arguments, requester, id_ = (
            parse_browse(request.query_params.multi_items()),
            requester_of(request),
            id_of(request),
        )
        node = id_.partition("/")[0]
        with self._browses.taken(requester):
            if self._elsewhere is not None and self._writes.is_elsewhere(node):
                asked = {"op": "browse", **named(requester), "id": id_, "arguments": arguments}
                return await _answered(self._elsewhere.look(node, asked))
            return await _answered(self._browsed(requester, id_, arguments))

    async def _browsed(self, requester: Requester, id_: str, arguments: Mapping[str, Any]) -> KeptAnswer:
        operator = requester.operator
        queue = find(self._host, self._rows.of(operator), self._topology, QUEUE, id_)
        place = self._writes.place(queue)
        if arguments["bodies"] and not operator.may_browse(place.mesh_address):
            raise WriteRefused(403, f"you have no right `browse` of {place.mesh_address!r}: ask without bodies")
        return KeptAnswer(200, await self._writes.queues.browse(place, arguments))

    # Decisions
    async def _decisions(self, request: Request) -> Response:
        given = request.query_params.multi_items()
        for number, (name, _) in enumerate(given):
            if name not in DECISION_PARAMETERS:
                raise QueryError(name[:80], f"unknown parameter {name[:80]!r}", DECISION_PARAMETERS)
            if name in dict(given[:number]):
                raise QueryError(name, f"the parameter {name} is given twice, expected once")
        after = parse_cursor(dict(given).get("after"))
        limit = whole_number("limit", dict(given).get("limit"), 1, MAX_PAGE) or DEFAULT_DECISIONS
        return await _answered(self._decision_page(requester_of(request), id_of(request), after, limit))

    async def _decision_page(
        self, requester: Requester, address: str, after: Mapping[str, int], limit: int
    ) -> KeptAnswer:
        decisions, operator = self._writes.decisions, requester.operator
        found = decisions.address(operator, address)
        parts = [await decisions.read(found, operator, after)]
        silent: list[str] = [*parts[0]["silent"]]
        if self._elsewhere is not None:
            asked = {"op": "decisions", **named(requester), "id": address, "after": after}
            away = [host for host, nodes in self._elsewhere.nodes.items() if nodes & self._topology.routers.keys()]
            answers = await asyncio.gather(*(_kept(self._elsewhere.look_at(host, asked)) for host in away))
            for answer in answers:
                if answer.status == HTTPStatus.OK:
                    parts.append(dict(answer.content))
                    silent += answer.content["silent"]
                else:
                    silent.append(str(answer.content["error"]))
        page = {"at": self._host.utc_s, "address": found.id, **page_of(parts, after, limit)}
        return KeptAnswer(200, {**page, "sentences": decisions.sentences(found), "silent": silent})

    # Events and the audit
    def _page_of(self, what: str) -> Callable[[Request], Awaitable[Response]]:
        async def page(request: Request) -> Response:
            requester = requester_of(request)
            refuse_unless(requester.operator.views_all, _NEEDS[what])
            given = request.query_params.multi_items()
            hosts = [value for name, value in given if name == HOST]
            parameters = [(name, value) for name, value in given if name != HOST]
            node = next((value for name, value in given if name == "node"), "") if what == "events" else ""
            asked = {"op": what, **named(requester), "parameters": parameters}
            if hosts:
                self._check_host(hosts)
            if self._elsewhere is not None and hosts and hosts[0] != self._elsewhere.own:
                return await _answered(self._elsewhere.look_at(hosts[0], asked))
            if self._elsewhere is not None and node and not hosts and self._writes.is_elsewhere(node):
                return await _answered(self._elsewhere.look(node, asked))
            return as_json(await self._page(what, parameters))

        return page

    def _check_host(self, hosts: Sequence[str]) -> None:
        known = () if self._elsewhere is None else (self._elsewhere.own, *self._elsewhere.hosts)
        if len(hosts) > 1:
            raise QueryError(HOST, f"the parameter {HOST} is given twice, expected once")
        if hosts[0] not in known:
            raise QueryError(HOST, f"no observer of a host {hosts[0][:80]!r} was heard", known)

    async def _page(self, what: str, parameters: Parameters) -> dict[str, Any]:
        if what == "audit":
            return await self._audit.page(parse_audit_query(parameters))
        return await self._events.page(parameters)

    # Answers to observers of other hosts
    async def answer_browse(self, request: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(request["arguments"])
        return await _told(self._browsed(requester_in(request, self._rights), str(request["id"]), arguments))

    async def answer_decisions(self, request: Mapping[str, Any]) -> dict[str, Any]:
        async def read() -> KeptAnswer:
            operator, after = requester_in(request, self._rights).operator, dict(request["after"])
            found = self._writes.decisions.address(operator, str(request["id"]))
            return KeptAnswer(200, await self._writes.decisions.read(found, operator, after))

        return await _told(read())

    async def answer_audit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return await _told(self._judged_page("audit", request))

    async def answer_events(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return await _told(self._judged_page("events", request))

    async def _judged_page(self, what: str, request: Mapping[str, Any]) -> KeptAnswer:
        if not requester_in(request, self._rights).operator.views_all:
            raise WriteRefused(403, f"your user has no right to see this: {_NEEDS[what]}")
        try:
            return KeptAnswer(200, await self._page(what, [(name, value) for name, value in request["parameters"]]))
        except QueryError as error:
            raise WriteRefused(400, str(error), error.place, error.allowed) from None


def handlers_of(writes: MeshWrites, views: OperatorViews) -> dict[str, HostHandler]:
    """Return by `op` what answers the questions of `mesh.watch.host_changes`."""
    return {
        "offer": writes.answer_offer,
        "change": writes.answer_change,
        "browse": views.answer_browse,
        "decisions": views.answer_decisions,
        "audit": views.answer_audit,
        "events": views.answer_events,
    }


async def _kept(work: Awaitable[KeptAnswer]) -> KeptAnswer:
    try:
        return await work
    except WriteRefused as refused:
        return KeptAnswer(refused.status, refused.to_map())


async def _answered(work: Awaitable[KeptAnswer]) -> Response:
    answer = await _kept(work)
    return as_json(answer.content, answer.status)


async def _told(work: Awaitable[KeptAnswer]) -> dict[str, Any]:
    answer = await _kept(work)
    return {"status": answer.status, "content": answer.content}


def parse_browse(parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the arguments of `browse` of a query string. Raises QueryError."""
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in BROWSE_PARAMETERS:
            raise QueryError(name[:80], f"unknown parameter {name[:80]!r}", BROWSE_PARAMETERS)
        if name in given:
            raise QueryError(name, f"the parameter {name} is given twice, expected once")
        given[name] = value
    bodies = given.get("bodies", "false")
    if bodies not in ("true", "false"):
        raise QueryError("bodies", f"expected true or false as bodies, got {bodies[:80]!r}", ("true", "false"))
    search = given.get("search")
    if search is not None and not 1 <= len(search) <= MAX_SEARCH_CHARS:
        raise QueryError("search", f"expected a text of 1 to {MAX_SEARCH_CHARS} characters to search for")
    after = whole_number("after", given.get("after"), 0, MAX_NUMBER)
    limit = whole_number("limit", given.get("limit"), 1, MAX_PAGE)
    body_bytes = whole_number("body_bytes", given.get("body_bytes"), 1, MAX_BODY_BYTES)
    found: dict[str, Any] = {"limit": limit or DEFAULT_PAGE, "bodies": bodies == "true"}
    if found["bodies"]:
        found["body_bytes"] = body_bytes or DEFAULT_BODY_BYTES
    return found | {name: value for name, value in (("after", after), ("search", search)) if value is not None}

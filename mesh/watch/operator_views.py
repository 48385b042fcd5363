"""What operators see beside the entities: the messages of a queue, the audit, and the events in the logs of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from mesh.watch.answers import as_json, refuse_unless, requester_of
from mesh.watch.audit import parse_audit_query, whole_number
from mesh.watch.query import QueryError
from mesh.watch.write_operations import MAX_NUMBER
from mesh.watch.write_request import WriteRefused
from mesh.watch.write_targets import find, id_of, path_of
from recording.entities import QUEUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from addressing.topology.model import Topology
    from mesh.watch.audit import AuditLog
    from mesh.watch.host_model import HostModel
    from mesh.watch.node_events import NodeEvents
    from mesh.watch.visible_rows import RowsByOperator
    from mesh.watch.writes import MeshWrites

MESSAGES: Final = "/api/queues/{id}/messages"
AUDIT: Final = "/api/audit"
EVENTS: Final = "/api/events"
MAX_SEARCH_CHARS: Final = 256
MAX_PAGE: Final = 100
"""The most messages of a page."""
DEFAULT_PAGE: Final = 50
MAX_BODY_BYTES: Final = 65_536
DEFAULT_BODY_BYTES: Final = 4096
BROWSE_PARAMETERS: Final = ("after", "limit", "search", "bodies", "body_bytes")


class OperatorViews:
    """``writes`` asks the brokers for messages; ``audit`` and ``events`` have the rest."""

    def __init__(
        self,
        topology: Topology,
        host: HostModel,
        rows: RowsByOperator,
        writes: MeshWrites,
        audit: AuditLog,
        events: NodeEvents,
    ) -> None:
        self._topology, self._host, self._rows = topology, host, rows
        self._writes, self._audit, self._events = writes, audit, events

    def routes(self) -> list[Route]:
        return [
            Route(path_of(MESSAGES, QUEUE), self._messages),
            Route(AUDIT, self._audit_page),
            Route(EVENTS, self._event_page),
        ]

    async def _messages(self, request: Request) -> Response:
        arguments = parse_browse(request.query_params.multi_items())
        operator = requester_of(request).operator
        try:
            queue = find(self._host, self._rows.of(operator), self._topology, QUEUE, id_of(request))
            place = self._writes.place(queue)
            if arguments["bodies"] and not operator.may_browse(place.mesh_address):
                raise WriteRefused(403, f"you have no right `browse` of {place.mesh_address!r}: ask without bodies")
            page = await self._writes.queues.browse(place, arguments)
        except WriteRefused as refused:
            return as_json(refused.to_map(), refused.status)
        return as_json(page)

    async def _audit_page(self, request: Request) -> Response:
        refuse_unless(requester_of(request).operator.views_all, "the audit needs `view` of #")
        return as_json(await self._audit.page(parse_audit_query(request.query_params.multi_items())))

    async def _event_page(self, request: Request) -> Response:
        refuse_unless(requester_of(request).operator.views_all, "events of nodes need `view` of #")
        return as_json(await self._events.page(request.query_params.multi_items()))


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

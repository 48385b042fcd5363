"""What the observer answers over HTTP: entities as pages of JSON and as a stream, metrics, and health.

`mesh.watch.request_guard` checks every request before it is answered here, and each answer has only what the requester
may see. Changes are in `mesh.watch.writes`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from addressing.operator_rights import Right
from mesh.watch import openapi
from mesh.watch.access import Access
from mesh.watch.answers import as_json, refuse_unless, requester_of
from mesh.watch.console import Console
from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.health import Health, healthz_mesh, livez, readyz
from mesh.watch.host_answers import HostAnswers
from mesh.watch.host_model import HostModel
from mesh.watch.mesh_pages import Parameters, page_map
from mesh.watch.mesh_view import MeshView, NobodyTells
from mesh.watch.metric_details import DetailQueryError, detailed_exposition, parse_detail_query
from mesh.watch.metrics import exposition
from mesh.watch.query import QueryError
from mesh.watch.request_guard import LIVEZ, RequestGuard
from mesh.watch.shares import Shares
from mesh.watch.visible_rows import RowsByOperator, VisibleRows
from recording.entities import BY_PLURAL, ENTITIES, LISTS, MODEL_VERSION, Entity

STREAM_S: Final = 1.0
"""The time between two looks for changes of a stream."""
MAX_STREAMS: Final = 100
MAX_STREAMS_OF_ONE: Final = 25
"""The most streams of one user; without a login, of one address."""
_EXPOSITION: Final = "text/plain; version=0.0.4"


@dataclass(slots=True)
class ObserverState:
    """What the interface shows. ``access`` decides who asks, and ``rows`` has what each may see of ``host``."""

    mesh: str
    version: str
    host: HostModel
    access: Access
    rows: RowsByOperator
    expected: Callable[[], tuple[ExpectedNode, ...]] = tuple
    """Returns the nodes of the topology that should run on this host."""
    unlisted: frozenset[str] = frozenset()
    """Declared patterns that have no series in `/metrics`."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the observer stops: streams end."""
    is_complete: bool = False
    """Whether all that the nodes had written when the observer started has been read."""
    streams: Shares = field(default_factory=lambda: Shares("streams", MAX_STREAMS, MAX_STREAMS_OF_ONE))
    """Streams that are open."""
    console: Console | None = None
    """The pages, which are mounted beside the interface."""
    view: MeshView | None = None
    """The view of all hosts; None where there is no other host."""
    operations: Sequence[Route] = ()
    """Routes of changes, and of what operators see beside the entities."""


def application(state: ObserverState) -> ASGIApp:
    """Return the interface to ``state`` as an ASGI application."""
    app = Starlette(
        routes=routes_of(state),
        exception_handlers={
            QueryError: _on_query_error,
            DetailQueryError: _on_query_error,
            HTTPException: _on_http_error,
        },
    )
    return RequestGuard(app, state.access, state.console)


def routes_of(state: ObserverState) -> list[Route]:
    """Return the routes of the interface to ``state``.

    All of it runs in the event loop, as the changes of the model do: starlette runs functions that are not `async` in
    threads.
    """

    own = HostAnswers(state.host, rows_of=lambda user: state.rows.of(state.access.rights.operator(user)))
    view = state.view or MeshView(state.host, own)

    def visible(request: Request) -> VisibleRows:
        return state.rows.of(requester_of(request).operator)

    async def index(_: Request) -> Response:
        entities, lists = (
            {
                each.plural: {"href": f"/api/{each.plural}", "meaning": each.meaning, "fields": list(each.names)}
                for each in some
            }
            for some in (ENTITIES, LISTS)
        )
        return as_json(
            {
                "mesh": state.mesh,
                "version": state.version,
                "model": MODEL_VERSION,
                "at": state.host.utc_s,
                "entities": entities,
                "lists": lists,
                "stream": "/api/stream?entity=links",
                "openapi": "/openapi.json",
            }
        )

    async def listing(request: Request) -> Response:
        entity = _entity(request.path_params["things"])
        found = await view.seen_by(visible(request)).page(entity, request.query_params.multi_items())
        return as_json(page_map(found, state.host.utc_s))

    async def one(request: Request) -> Response:
        entity, wanted = _entity(request.path_params["things"]), request.path_params["id"]
        try:
            found = await view.seen_by(visible(request)).one(entity, wanted)
        except NobodyTells as error:
            raise HTTPException(503, f"nobody can tell of {entity.name} {wanted[:80]!r} now: {error}") from None
        if found is None:
            raise HTTPException(404, f"there is no {entity.name} {wanted[:80]!r} now")
        return as_json(found)

    async def description(_: Request) -> Response:
        return as_json(openapi.document(state.version))

    async def stream(request: Request) -> Response:
        parameters = [(name, value) for name, value in request.query_params.multi_items() if name != "entity"]
        name = request.query_params.get("entity")
        if name not in BY_PLURAL:
            raise QueryError("entity", f"expected the entities to stream, got {name!r}", BY_PLURAL)
        view.check(BY_PLURAL[name], parameters)
        seen = view.seen_by(visible(request))
        with ExitStack() as share:
            share.enter_context(state.streams.taken(requester_of(request)))
            return _SharedStream(_events(BY_PLURAL[name], parameters, state, seen), share.pop_all())

    async def me(request: Request) -> Response:
        operator = requester_of(request).operator
        rights = {
            right.value: ["#"] if operator.is_owner else list(operator.patterns.get(right, ())) for right in Right
        }
        return as_json({"user": operator.name, "is_owner": operator.is_owner, **rights})

    async def metrics(request: Request) -> Response:
        refuse_unless(requester_of(request).operator.views_all, "metrics need `view` of #")
        _check_complete(state)
        return Response("".join(exposition(state.host, state.expected(), state.unlisted)), media_type=_EXPOSITION)

    async def detailed_metrics(request: Request) -> Response:
        query = parse_detail_query(request.query_params.multi_items())
        _check_complete(state)
        return Response("".join(detailed_exposition(visible(request), query)), media_type=_EXPOSITION)

    async def is_alive(request: Request) -> Response:
        _check_parameters(request, ("node",))
        return _judged(livez(state.host, time.time(), request.query_params.get("node")))

    async def is_ready(request: Request) -> Response:
        _check_parameters(request)
        return _judged(readyz(state.host, state.expected()))

    async def is_whole(request: Request) -> Response:
        _check_parameters(request)
        return _judged(await view.health(healthz_mesh(state.host, state.expected())))

    return [
        Route("/api", index),
        Route("/api/me", me),
        Route("/api/stream", stream),
        *state.operations,
        *(state.console.list_routes() if state.console is not None else ()),
        Route("/api/{things}", listing),
        Route("/api/{things}/{id:path}", one),
        Route("/openapi.json", description),
        Route("/metrics", metrics),
        Route("/metrics/detailed", detailed_metrics),
        Route(LIVEZ, is_alive),
        Route("/readyz", is_ready),
        Route("/healthz/mesh", is_whole),
        *(state.console.routes() if state.console is not None else ()),
    ]


async def _events(entity: Entity, parameters: Parameters, state: ObserverState, view: MeshView) -> AsyncIterator[str]:
    """Yield server-sent events: first `all` with the page, then `changes` whenever the page changed.

    A client that comes back gets `all` again, and so has missed nothing of what is there.
    """
    shown: dict[str, dict[str, Any]] | None = None
    missing: list[Any] = []
    while not state.stopping.is_set():
        try:
            said = page_map(await view.page(entity, parameters), state.host.utc_s)
        except QueryError as error:
            # Hosts have too many rows by now.
            yield _event("error", {"error": str(error), "place": error.place, "allowed": list(error.allowed)})
            return
        items = said.pop("items")
        del said["next"]
        rows = {row["id"]: row for row in items}
        if shown is None:
            yield _event("all", {**said, "items": items})
        else:
            changed = [row for id_, row in rows.items() if shown.get(id_) != row]
            gone = [id_ for id_ in shown if id_ not in rows]
            if changed or gone or said["missing"] != missing:
                yield _event("changes", {**said, "items": changed, "gone": gone, "order": list(rows)})
            else:
                # A comment shows that the observer lives, and finds out that nobody listens any more.
                yield ": \n\n"
        shown, missing = rows, said["missing"]
        try:
            async with asyncio.timeout(STREAM_S):
                await state.stopping.wait()
        except TimeoutError:
            pass


class _SharedStream(StreamingResponse):
    """A stream of events that gives ``share`` back when it ends, also if its client was gone before the first event."""

    def __init__(self, events: AsyncIterator[str], share: ExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._share:
            await super().__call__(scope, receive, send)


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _entity(plural: str) -> Entity:
    found = BY_PLURAL.get(plural)
    if found is None:
        raise HTTPException(404, f"there are no {plural[:80]!r} here, expected one of {', '.join(BY_PLURAL)}")
    return found


def _check_complete(state: ObserverState) -> None:
    # Counters that still grow by what the nodes did in the last hours would show as a burst of traffic.
    if not state.is_complete:
        raise HTTPException(503, "the observer has just started, and still reads what the nodes have recorded")


def _check_parameters(request: Request, allowed: Sequence[str] = ()) -> None:
    """Raise QueryError for a parameter not in ``allowed``: the answer would be about something else than was asked."""
    for name in request.query_params:
        if name not in allowed:
            raise QueryError(name[:80], f"unknown parameter {name[:80]!r}", allowed)


def _judged(health: Health) -> Response:
    return as_json({"ok": health.is_well, "sentences": health.sentences}, 200 if health.is_well else 503)


def _on_query_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, (QueryError, DetailQueryError))
    return as_json({"error": str(error), "place": error.place, "allowed": list(error.allowed)}, 400)


def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return as_json({"error": error.detail}, error.status_code, dict(error.headers or {}))

"""The console of the observer: its pages, the data that only the pages need, and the login of a browser.

    /, /addresses, /address, ...    the pages: one HTML document, whose scripts show what the URL says
    /console/page/<file>            scripts, styles and the icon
    /console/model                  fields of the entities, and what each page shows, as JSON
    /console/map                    what is wrong, and the map of the mesh
    /api/findings                   what is wrong, for programs
    /console/clients                clients by user and container-id, with the parameters of a query
    /console/reports                reports of drills and link logs
    /login, /logout                 a one-time token, or a user's name and password, becomes a session; the session ends
    /login/once                     an owner's token becomes a one-time token

Everything else of the pages comes from the REST interface, and their changes go there.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mesh.watch.access import Access, LoginKind
from mesh.watch.answers import as_json, requester_of
from mesh.watch.client_groups import CLIENT_GROUP
from mesh.watch.host_answers import HostAnswers
from mesh.watch.login import SESSION_S
from mesh.watch.mesh_map import MeshLayout
from mesh.watch.mesh_pages import page_map
from mesh.watch.mesh_plan import MeshState, mesh_plan
from mesh.watch.mesh_view import MeshView
from mesh.watch.report_pages import ReportPages
from mesh.watch.request_source import request_source
from mesh.watch.troubles import troubles
from mesh.watch.visible_rows import RowsByOperator
from recording.entities import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
FINDINGS: Final = "/api/findings"
MAP_S: Final = 0.5
"""For how long a map is given to other viewers as well."""
_MAX_LOGIN_BYTES: Final = 8192
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_PAGE_FILES: Final = "/console/page/"
_OPEN: Final = frozenset({("GET", "/login"), ("POST", "/login")} | {
    ("GET", _PAGE_FILES + name) for name in ("login.js", "console.css", "icon.svg")
})  # fmt: skip
"""What a browser needs to log in, and so needs no login: nothing of the mesh is in these answers."""


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page: the REST interface calls what the page shows ``things``; ``command`` shows the same in a terminal.

    The command contains no name that a client chose, so that the command can be pasted whatever names there are.
    ``parent``: of a page about one thing, the path of the page that lists such things.
    """

    path: str
    title: str
    things: str
    command: tuple[str, ...]
    parent: str | None = None


PAGES: Final = (
    ConsolePage("/", "Map", "nodes", ("status",)),
    ConsolePage("/addresses", "Addresses", "patterns", ("status", "--addresses")),
    ConsolePage("/address", "Address", "addresses", ("status", "--addresses", "--queues"), "/addresses"),
    ConsolePage("/clients", "Clients", "users", ("status", "--connections")),
    ConsolePage("/links", "Links", "links", ("status", "--addresses", "--connections")),
    ConsolePage("/queues", "Queues", "queues", ("status", "--queues")),
    ConsolePage("/nodes", "Nodes", "nodes", ("status",)),
    ConsolePage("/events", "Events", "events", ("status",)),
    ConsolePage("/reports", "Reports", "reports", ("status",)),
    ConsolePage("/queue", "Queue", "queues", ("status", "--queues"), "/queues"),
    ConsolePage("/connection", "Connection", "connections", ("status", "--connections"), "/clients"),
    ConsolePage("/link", "Link", "links", ("status", "--addresses", "--connections"), "/links"),
    ConsolePage("/node", "Node", "nodes", ("status",), "/nodes"),
    ConsolePage("/neighbor", "Neighbor", "neighbors", ("status", "--connections"), "/nodes"),
)


class Console:
    """The console of the mesh of ``topology``; ``host`` is what the observer knows of the nodes of its host.

    ``view``: the view of all hosts; None where there is no other host. ``access`` has the sessions, and ``rows`` what
    each operator may see; ``token_file`` has the owner's token.
    """

    def __init__(
        self,
        topology: Topology,
        host: HostModel,
        access: Access,
        rows: RowsByOperator,
        token_file: Path | None = None,
        view: MeshView | None = None,
    ) -> None:
        self._host, self._access, self._rows, self._token_file = host, access, rows, token_file
        self._view = view or MeshView(
            host, HostAnswers(host, rows_of=lambda user: rows.of(access.rights.operator(user)))
        )
        self._file = topology.file
        self._plan = mesh_plan(topology)
        self._map = MeshLayout(self._plan)
        self._files = dict(_page_files())
        self._reports = ReportPages(topology.directory if topology.file is not None else None)
        self._drawn: tuple[float, dict[str, Any]] = (float("-inf"), {})

    def routes(self) -> list[Route]:
        return [
            *(Route(page.path, self._page) for page in PAGES),
            Route("/console/page/{name}", self._file_of_page),
            Route("/console/model", self._model),
            Route("/console/map", self._map_now),
            Route("/console/clients", self._clients),
            *self._reports.routes(),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/login/once", self._new_once, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        ]

    def list_routes(self) -> list[Route]:
        """Return the routes that stand among those of the entities."""
        return [Route(FINDINGS, self._findings)]

    def is_open(self, scope: Scope) -> bool:
        """Tell whether a request needs no login."""
        return (scope["method"], scope["path"]) in _OPEN

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request for a page without a login, or None if the request is for no page."""
        if any(scope["path"] == page.path for page in PAGES):
            return self._html("login.html", 401)
        return None

    # Pages
    async def _page(self, _: Request) -> Response:
        return self._html("index.html")

    async def _login_page(self, _: Request) -> Response:
        return self._html("login.html")

    async def _file_of_page(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404, f"the console has no file {name[:80]!r}")
        return Response(self._files[name], media_type=_TYPES[Path(name).suffix])

    def _html(self, name: str, status: int = 200) -> Response:
        return Response(self._files[name], status, {"content-security-policy": POLICY}, media_type=_TYPES[".html"])

    # Data
    async def _model(self, _: Request) -> Response:
        file = ["-t", str(self._file)] if self._file is not None else []
        return as_json(
            {
                "mesh": self._plan.mesh,
                "token_file": str(self._token_file) if self._access.has_users else None,
                "topology": shlex.join(file),
                "pages": [
                    {"path": page.path, "title": page.title, "things": page.things, "parent": page.parent,
                     "command": shlex.join(["amqpmesh", *page.command, *file])}
                    for page in PAGES
                ],
                "entities": {
                    entity.plural: [
                        {"name": field.name, "type": field.type, "unit": field.unit, "meaning": field.meaning}
                        for field in entity.fields
                    ]
                    for entity in (*ENTITIES, CLIENT_GROUP)
                },
            }
        )  # fmt: skip

    async def _map_now(self, request: Request) -> Response:
        operator = requester_of(request).operator
        if not operator.views_all:
            return as_json(await self._draw(operator))
        at, drawn = self._drawn
        if not 0 <= self._host.utc_s - at < MAP_S or not drawn:
            drawn = await self._draw(operator)
            self._drawn = self._host.utc_s, drawn
        return as_json(drawn)

    async def _draw(self, operator: Operator) -> dict[str, Any]:
        """Return the map that ``operator`` may see: without the clients of others, and troubles of their addresses."""
        state, found = await self._found(operator)
        drawn = self._map.draw(state)
        if not self._rows.of(operator).is_all:
            drawn["boxes"] = [
                box for box in drawn["boxes"] if box["kind"] != "clients" or box.get("user") == operator.name
            ]
        found["troubles"] = found.pop("items")
        return {**found, **drawn}

    async def _findings(self, request: Request) -> Response:
        return as_json((await self._found(requester_of(request).operator))[1])

    async def _found(self, operator: Operator) -> tuple[MeshState, dict[str, Any]]:
        """Return the state of the mesh, and a page of the findings, as ``operator`` may see them."""
        rows = self._rows.of(operator)
        view = self._view.seen_by(rows)
        await view.refresh()
        state = MeshState(self._plan, view.summaries())
        found, left_out = troubles(self._plan, state, self._host, rows.has, await view.troubles())
        return state, {
            "at": self._host.utc_s,
            "items": [each.to_map() for each in found],
            "left_out": left_out,
            "missing": [each.to_map() for each in view.missing()],
        }

    async def _clients(self, request: Request) -> Response:
        rows = self._rows.of(requester_of(request).operator)
        found = await self._view.seen_by(rows).page(CLIENT_GROUP, request.query_params.multi_items())
        return as_json(page_map(found, self._host.utc_s))

    # Login
    async def _new_once(self, request: Request) -> Response:
        """Answer with the path of a page, and a one-time token in its fragment.

        A fragment is in no request, and so in no log.
        """
        if request.headers.get("origin") is not None:
            raise HTTPException(403, "a one-time token is for `amqpmesh console`, not for a page in a browser")
        if requester_of(request).login is not LoginKind.TOKEN:
            raise HTTPException(403, "a one-time token is for the owner of the mesh, who has the observer's token")
        return as_json({"path": f"/login#{self._access.sessions.new_once()}"})

    async def _log_in(self, request: Request) -> Response:
        match await _login_of(request):
            case {"once": str(once)}:
                session = self._access.sessions.redeem(once)
                if session is None:
                    raise HTTPException(
                        403,
                        "the one-time token is unknown, was used, or is older than 60 s: run `amqpmesh console` again",
                    )
            case {"user": str(user), "password": str(password)}:
                source = request_source(request.scope, request.headers)
                if (refused := await self._access.login(user, password, source.name)) is not None:
                    raise HTTPException(403 if refused.status == 401 else refused.status, refused.sentence)
                session = self._access.sessions.new_session(user)
            case _:
                raise HTTPException(400, 'expected {"once": TOKEN}, or {"user": NAME, "password": TEXT}, as JSON')
        answer = as_json({"path": "/"})
        answer.set_cookie(
            self._access.sessions.cookie, session, max_age=int(SESSION_S), path="/", httponly=True, samesite="strict"
        )
        return answer

    async def _log_out(self, _: Request) -> Response:
        answer = as_json({"path": "/login"})
        answer.delete_cookie(self._access.sessions.cookie, path="/", httponly=True, samesite="strict")
        return answer


async def _login_of(request: Request) -> Any:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_LOGIN_BYTES:
            raise HTTPException(413, f"a login has at most {_MAX_LOGIN_BYTES} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _page_files() -> Iterable[tuple[str, bytes]]:
    """Yield name and content of each file that a browser may load."""
    for folder in (files("mesh.watch") / "page", files("mesh.pages")):
        for file in folder.iterdir():
            if Path(file.name).suffix in _TYPES and (file.name.startswith("uPlot") or folder.name == "page"):
                yield file.name, file.read_bytes()

"""The check of each request before anything answers it: by its `Host`, its site, and its login.

`Host` has to be this host's own name, or a web page of another site could read the interface in the browser of somebody
here (DNS rebinding). A change from a page of another origin is refused whatever its login is: a browser sends not only
cookies by itself, but also a password that it was given once for Basic, or in a URL. What was found out about the login
goes on with the request.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from mesh.watch.access import OWN_SITE, READING, Access, AccessRefused, LoginKind, own_origin
from mesh.watch.answers import REQUESTER, as_json
from mesh.watch.request_source import request_source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mesh.watch.console import Console

OWN_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LIVEZ: Final = "/livez"
MAX_HEAD_BYTES: Final = 65_536
"""The most bytes of path and headers, whether they came at once or not: h11 counts only those that it keeps."""
_OF_OTHERS: Final = frozenset({"cross-site", "same-site"})
"""Values of Sec-Fetch-Site by which a browser says that a page of somebody else asks [Fetch Metadata]."""
_HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
_FREE: Final = frozenset({"/api/me", "/login/once", "/logout", "/api", "/openapi.json"})
"""What needs a login, and no right: none of it has anything of the mesh's traffic."""


class RequestGuard:
    """Checks `Host`, site and login of each request, and adds the security headers to each answer."""

    def __init__(self, app: ASGIApp, access: Access, console: Console | None) -> None:
        self._app, self._access, self._console = app, access, console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in own)]
            await send(message)

        refusal = await self._refusal(scope, Headers(scope=scope))
        answering: Callable[[Scope, Receive, Send], Awaitable[None]] = refusal or self._app
        # A client that goes away before the end of its request's body gets no answer.
        with suppress(ClientDisconnect):
            await answering(scope, receive, send_guarded)

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        named = headers.get("host", "")
        name = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
        if name.lower() not in OWN_NAMES:
            return as_json(
                {"error": f"the Host {named[:80]!r} is not of this host, expected 127.0.0.1 or localhost"}, 421
            )
        if sum(len(name) + len(value) for name, value in headers.raw) + len(scope["raw_path"]) > MAX_HEAD_BYTES:
            return as_json(
                {"error": f"the path and headers of a request have at most {MAX_HEAD_BYTES:,} bytes"}, 431,
                {"connection": "close"},
            )  # fmt: skip
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may have gone by the other one, and take the end of this body for the next request [RFC 9112 6.1].
            return as_json(
                {"error": "a request has Content-Length or Transfer-Encoding, and not both"},
                400,
                {"connection": "close"},
            )
        if headers.get("sec-fetch-site") in _OF_OTHERS and headers.get("sec-fetch-mode") != "navigate":
            return as_json({"error": "a page of another site, or of another port, cannot ask the observer"}, 403)
        if scope["method"] not in READING and not _is_of_own_page(headers):
            return as_json({"error": "a page of another origin cannot change anything: expected no Origin, or that of "
                            "the console"}, 403)  # fmt: skip
        # Whoever starts the observer again has no token, and the answer names no node.
        is_open = scope["path"] == LIVEZ and not scope["query_string"]
        if is_open or (self._console is not None and self._console.is_open(scope)):
            return None
        found = await self._access.requester(scope["method"], headers, request_source(scope, headers))
        if isinstance(found, AccessRefused):
            return self._refused(found, scope, headers)
        scope[REQUESTER] = found
        if found.login is not LoginKind.NONE and not found.operator.sees_mesh and scope["path"] not in _FREE:
            return as_json(
                {"error": f"the user {found.operator.name} has no right to see the mesh: the topology gives none of "
                          "view, browse and manage"}, 403
            )  # fmt: skip
        return None

    def _refused(self, refused: AccessRefused, scope: Scope, headers: Headers) -> Response:
        if refused.status == 401 and self._console is not None and (page := self._console.refusal(scope)) is not None:
            return page
        extra = {}
        if refused.status == 401:
            extra["www-authenticate"] = self._access.challenge(headers)
        if refused.retry_after_s is not None:
            extra["retry-after"] = str(refused.retry_after_s)
        return as_json({"error": refused.sentence}, refused.status, extra)


def _is_of_own_page(headers: Headers) -> bool:
    """Say whether a request comes from a page of the console, or from a program, which names no page."""
    return headers.get("sec-fetch-site", "none") in OWN_SITE and headers.get(
        "origin", own_origin(headers)
    ) == own_origin(headers)

"""The check of each request before anything answers it: by its `Host`, its site, and its login.

`Host` has to be this host's own name, or a web page of another site could read the interface in the browser of somebody
here (DNS rebinding). What was found out about the login goes on with the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from mesh.watch.access import Access, AccessRefused, LoginKind
from mesh.watch.answers import REQUESTER, as_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mesh.watch.console import Console

OWN_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LIVEZ: Final = "/livez"
_OF_OTHERS: Final = frozenset({"cross-site", "same-site"})
"""Values of Sec-Fetch-Site by which a browser says that a page of somebody else asks [Fetch Metadata]."""
_HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
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
        await answering(scope, receive, send_guarded)

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        named = headers.get("host", "")
        name = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
        if name.lower() not in OWN_NAMES:
            return as_json(
                {"error": f"the Host {named[:80]!r} is not of this host, expected 127.0.0.1 or localhost"}, 421
            )
        if headers.get("sec-fetch-site") in _OF_OTHERS and headers.get("sec-fetch-mode") != "navigate":
            return as_json({"error": "a page of another site, or of another port, cannot ask the observer"}, 403)
        # Whoever starts the observer again has no token, and the answer names no node.
        is_open = scope["path"] == LIVEZ and not scope["query_string"]
        if is_open or (self._console is not None and self._console.is_open(scope)):
            return None
        peer = ":".join(map(str, scope.get("client") or ()))
        found = await self._access.requester(scope["method"], headers, peer)
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

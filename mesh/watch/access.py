"""Who asks the observer, and with which rights: the owner's token, a session of the console, or a user's password.

In a mesh without users everybody on the host may look without a login, and only the owner may change anything. Once the
mesh has users, each request needs a login. A change needs one always.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from addressing.operator_rights import OWNER, Operator, OperatorRights
from addressing.topology.credentials import parse_secret
from mesh.watch.login import ConsoleLogin
from mesh.watch.password_login import PasswordLogin, PasswordResult
from wire.sasl.authenticator import Authenticator

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from addressing.topology.model import Topology
    from mesh.watch.request_source import RequestSource

READING: Final = frozenset({"GET", "HEAD"})
"""Methods of HTTP that change nothing."""
OWN_SITE: Final = frozenset({"none", "same-origin"})
"""Values of Sec-Fetch-Site of requests from the observer's own pages, or from the address bar [Fetch Metadata]."""


def own_origin(headers: Headers) -> str:
    """Return the Origin [RFC 6454] of pages of the host that a request names: of the console's own ones."""
    return f"http://{headers.get('host', '')}"


class LoginKind(StrEnum):
    """What a request was let in by."""

    TOKEN = "token"
    SESSION = "session"
    PASSWORD = "password"
    MANAGEMENT = "management"
    """None over HTTP: a router of the mesh has checked the user, who asks `$management`."""
    NONE = "none"
    """Nothing, in a mesh without users: the request may only look."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who sends a request. ``peer`` and ``source``: where the request comes from, as `RequestSource` has them."""

    operator: Operator
    login: LoginKind
    peer: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class AccessRefused:
    """A request that is not let in, with the status of HTTP, a sentence, and seconds to wait, if waiting helps."""

    status: int
    sentence: str
    retry_after_s: int | None = None


class Access:
    """Decides who a request to the observer of ``topology`` is from. ``token``: the observer's own, its owner's.

    ``now`` returns seconds of UTC, ``clock`` seconds that are never set back.
    """

    def __init__(
        self, topology: Topology, token: str, now: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rights = OperatorRights(topology)
        self.has_users = bool(topology.users)
        texts = {name: user.password for name, user in topology.users.items() if user.password is not None}
        self.sessions = ConsoleLogin(token, now, texts)
        self.passwords = PasswordLogin(Authenticator({name: parse_secret(text) for name, text in texts.items()}), clock)
        self._token = token

    async def requester(self, method: str, headers: Headers, source: RequestSource) -> Requester | AccessRefused:
        """Return the sender of a request with these headers, or the reason of a refusal."""
        peer, place = source
        kind, _, given = headers.get("authorization", "").partition(" ")
        match kind.lower():
            case "bearer":
                if hmac.compare_digest(given.strip().encode(), self._token.encode()):
                    return Requester(OWNER, LoginKind.TOKEN, peer, place)
                return _no_login("the token is not the observer's")
            case "basic":
                return await self._with_password(given, source)
            case "":
                pass
            case _:
                return _no_login(f"unknown scheme {kind[:20]!r} of Authorization, expected Bearer or Basic")
        session = self._session_in(method, headers)
        if session is not None:
            return Requester(session, LoginKind.SESSION, peer, place)
        if self.has_users:
            return _no_login("the mesh has users, so a request needs a login")
        if method not in READING:
            return _no_login("a change needs a login")
        return Requester(self.rights.operator(None), LoginKind.NONE, peer, place)

    def challenge(self, headers: Headers) -> str:
        """Return WWW-Authenticate for a refused request: a browser that is asked for a password shows a dialog of its
        own, in place of the console's page for the login.
        """
        if self.passwords.has_users and "sec-fetch-mode" not in headers:
            return 'Bearer, Basic realm="amqpmesh", charset="UTF-8"'
        return "Bearer"

    async def login(self, user: str, password: str, source: str) -> AccessRefused | None:
        """Check a password that comes from ``source``; return None if it is right."""
        match await self.passwords.check(user, password, source):
            case PasswordResult.RIGHT:
                return None
            case PasswordResult.BUSY:
                return AccessRefused(503, "too many passwords are being checked; try again in a second", 1)
            case PasswordResult.LIMITED:
                return AccessRefused(
                    429, "too many passwords from this address were wrong; wait 10 s before the next try", 10
                )
            case _:
                return _no_login("the user or the password is wrong")

    async def _with_password(self, given: str, source: RequestSource) -> Requester | AccessRefused:
        try:
            user, colon, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            colon = ""
        if not colon:
            return _no_login("Authorization is not that of a user, expected Basic and base64 of USER:PASSWORD")
        refused = await self.login(user, password, source.name)
        return refused or Requester(self.rights.operator(user), LoginKind.PASSWORD, *source)

    def _session_in(self, method: str, headers: Headers) -> Operator | None:
        """Return whose session the cookies have; None without one.

        Browsers send the cookie with requests from pages at other ports of this host, too, and say so [Fetch Metadata].
        A browser that does not say it names the page's origin with each change.
        """
        if not headers.get("cookie"):
            return None
        site = headers.get("sec-fetch-site")
        is_own = site in OWN_SITE
        if site is None:
            is_own = method in READING or headers.get("origin") == own_origin(headers)
        if not is_own:
            return None
        # Cookies of other servers of this host come, too, and need not be well-formed.
        for each in headers["cookie"].split(";"):
            name, _, value = each.strip().partition("=")
            if name == self.sessions.cookie and (session := self.sessions.session(value)) is not None:
                return OWNER if session.user is None else self.rights.operator(session.user)
        return None


def _no_login(why: str) -> AccessRefused:
    return AccessRefused(
        401,
        f"{why}: log in by `Authorization: Bearer TOKEN` with the observer's token, by Basic as a user of the mesh, or "
        "on a page of the console",
    )

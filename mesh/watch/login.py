"""Sessions of a browser, made of a one-time token or of a password. Sans-IO, except for random numbers.

The owner of the mesh has the observer's token, in a file that nobody else can read. A request with that token gets a
one-time token, which `amqpmesh console` prints as a part of a URL; the page behind the URL changes the one-time token
into a session, which the browser keeps in a cookie that no script can read. A user of the topology gets a session for
his name and password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

ONCE_S: Final = 60.0
"""How long a one-time token can be used."""
SESSION_S: Final = 12 * 3600.0
"""How long a session lasts: a shift, or the length of an incident."""
MAX_ONCE: Final = 100
"""The most one-time tokens that wait to be used; the oldest is dropped for another one."""


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A login of a browser that has not ended. ``user`` None: of the mesh's owner."""

    user: str | None


class ConsoleLogin:
    """The one-time tokens and sessions of one observer.

    A session is signed with a key that is made of ``token``, the observer's own: so a session outlives a restart of the
    observer, and ends for everybody when the owner deletes the file with the token and restarts the observer. The
    session of a user ends, too, when the topology has the user no longer, or with another password: ``secrets_of`` has
    the text of each user's secret. ``now`` returns seconds of UTC.
    """

    def __init__(self, token: str, now: Callable[[], float], secrets_of: Mapping[str, str] | None = None) -> None:
        self._key = hashlib.sha256(b"amqpmesh console session\0" + token.encode()).digest()
        # Browsers give the cookies of one port to all ports of a host: observers of two meshes need two names.
        self.cookie = f"amqpmesh_{hashlib.sha256(self._key).hexdigest()[:8]}"
        """The name of the cookie that has the session."""
        self._secrets = dict(secrets_of or {})
        self._now = now
        self._until: dict[str, float] = {}
        """By one-time token that was not used yet, the end of its time, the oldest first."""

    def new_once(self) -> str:
        """Return a new one-time token of the owner."""
        while len(self._until) >= MAX_ONCE:
            del self._until[next(iter(self._until))]
        once = secrets.token_urlsafe(32)
        self._until[once] = self._now() + ONCE_S
        return once

    def redeem(self, once: str) -> str | None:
        """Return a new session of the owner for a one-time token, or None if it is unknown, used, or too old."""
        until = self._until.pop(once, None)
        if until is None or self._now() >= until:
            return None
        return self.new_session(None)

    def new_session(self, user: str | None) -> str:
        """Return a new session of ``user``, whose password was right, or of the owner."""
        name = "" if user is None else base64.urlsafe_b64encode(user.encode()).decode().rstrip("=")
        content = f"{int(self._now() + SESSION_S)}.{secrets.token_urlsafe(16)}.{name}"
        return f"{content}.{self._signature(content, user)}"

    def session(self, text: str) -> ConsoleSession | None:
        """Return the session that ``text`` is, or None if it is not one of this observer, or has ended."""
        content, _, signature = text.rpartition(".")
        user = _user_in(content)
        if user is not None and user not in self._secrets:
            return None
        if not hmac.compare_digest(signature.encode(), self._signature(content, user).encode()):
            return None
        return ConsoleSession(user) if self._now() < int(content.partition(".")[0]) else None

    def _signature(self, content: str, user: str | None) -> str:
        secret = "" if user is None else self._secrets.get(user, "")
        return hmac.new(self._key, f"{content}\0{secret}".encode(), hashlib.sha256).hexdigest()


def _user_in(content: str) -> str | None:
    name = content.rpartition(".")[2]
    try:
        return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode() or None
    except ValueError:
        # Whatever was not signed here is refused by its signature.
        return None

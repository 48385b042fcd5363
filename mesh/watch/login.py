"""The login of a browser to the observer: a one-time token becomes a session. Sans-IO, except for random numbers.

The owner of the mesh has the observer's token, in a file that nobody else can read. A request with that token gets a
one-time token, which `amqpmesh console` prints as a part of a URL; the page behind the URL changes the one-time token
into a session, which the browser keeps in a cookie that no script can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

ONCE_S: Final = 60.0
"""How long a one-time token can be used."""
SESSION_S: Final = 12 * 3600.0
"""How long a session lasts: a shift, or the length of an incident."""
MAX_ONCE: Final = 100
"""The most one-time tokens that wait to be used; the oldest is dropped for another one."""


class ConsoleLogin:
    """The one-time tokens and sessions of one observer.

    A session is signed with a key that is made of ``token``, the observer's own: so a session outlives a restart of the
    observer, and ends for everybody when the owner deletes the file with the token and restarts the observer. ``now``
    returns seconds of UTC.
    """

    def __init__(self, token: str, now: Callable[[], float]) -> None:
        self._key = hashlib.sha256(b"amqpmesh console session\0" + token.encode()).digest()
        # Browsers give the cookies of one port to all ports of a host: observers of two meshes need two names.
        self.cookie = f"amqpmesh_{hashlib.sha256(self._key).hexdigest()[:8]}"
        """The name of the cookie that has the session."""
        self._now = now
        self._until: dict[str, float] = {}
        """By one-time token that was not used yet, the end of its time, the oldest first."""

    def new_once(self) -> str:
        """Return a new one-time token."""
        while len(self._until) >= MAX_ONCE:
            del self._until[next(iter(self._until))]
        once = secrets.token_urlsafe(32)
        self._until[once] = self._now() + ONCE_S
        return once

    def redeem(self, once: str) -> str | None:
        """Return a new session for a one-time token, or None if the token is unknown, used, or too old."""
        until = self._until.pop(once, None)
        if until is None or self._now() >= until:
            return None
        content = f"{int(self._now() + SESSION_S)}.{secrets.token_urlsafe(16)}"
        return f"{content}.{self._signature(content)}"

    def is_session(self, text: str) -> bool:
        """Tell whether ``text`` is a session that has not ended."""
        content, _, signature = text.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(content).encode()):
            return False
        return self._now() < int(content.partition(".")[0])

    def _signature(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), hashlib.sha256).hexdigest()

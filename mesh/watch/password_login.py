"""Checks the passwords of the topology's users: in threads, with few tries, and a right one again without a new check.

To check a password takes milliseconds by design. So checks run in threads, a few at a time; a request that finds too
many before it is refused at once. Each failure costs the user's name a try, and the name has few; so nobody guesses
passwords, and nobody can use up the observer's CPU. A password that was right is known for a minute by a keyed hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final

from wire.sasl.authenticator import Authenticator, PasswordCheck

THREADS: Final = 2
MAX_CHECKS: Final = 16
"""The most checks that run, or wait for a thread."""
TRIES: Final = 5
"""Failures of one name at once; one more failure is allowed each TRY_S."""
TRY_S: Final = 10.0
ALL_TRIES: Final = 50
"""Failures of all names together that may come at once; ALL_TRIES_PER_S lasting."""
ALL_TRIES_PER_S: Final = 5.0
MAX_NAMES: Final = 1000
"""The most names whose tries are counted; the name that was tried longest ago is forgotten."""
RIGHT_S: Final = 60.0
"""For how long a right password is known."""
MAX_RIGHT: Final = 1000
MAX_PASSWORD_CHARS: Final = 1024
"""A longer password is wrong without a check."""


class PasswordResult(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    BUSY = "busy"
    """Too many other checks wait."""
    LIMITED = "limited"
    """Too many passwords of this name, or of all names, were wrong."""


class _TryBucket:
    """The tries that are left of some tries, which come back at a rate."""

    def __init__(self, most: float, per_s: float, now: float) -> None:
        self._most, self._per_s, self._left, self._at = most, per_s, most, now

    def has_one(self, now: float) -> bool:
        self._left, self._at = min(self._most, self._left + (now - self._at) * self._per_s), now
        return self._left >= 1

    def add(self, count: int) -> None:
        self._left = min(self._most, self._left + count)


class PasswordLogin:
    """The passwords of the users that ``authenticator`` has. ``clock``: seconds, never set back."""

    def __init__(self, authenticator: Authenticator, clock: Callable[[], float]) -> None:
        self._authenticator, self._clock = authenticator, clock
        self._threads = ThreadPoolExecutor(THREADS, "password")
        self._checks = 0
        self._key = secrets.token_bytes(32)
        self._right_until: dict[bytes, float] = {}
        self._by_name: dict[str, _TryBucket] = {}
        self._of_all = _TryBucket(ALL_TRIES, ALL_TRIES_PER_S, clock())

    @property
    def has_users(self) -> bool:
        return self._authenticator.has_users

    async def check(self, user: str, password: str) -> PasswordResult:
        if len(password) > MAX_PASSWORD_CHARS:
            return PasswordResult.WRONG
        now = self._clock()
        digest = self._digest(user, password)
        if now < self._right_until.get(digest, now):
            return PasswordResult.RIGHT
        bucket = self._bucket(user, now)
        # Each is asked, so that both count the time that has passed.
        if not all([bucket.has_one(now), self._of_all.has_one(now)]):
            return PasswordResult.LIMITED
        if self._checks >= MAX_CHECKS:
            return PasswordResult.BUSY
        # A try is taken before the check, or tries at the same moment would not count.
        for each in (bucket, self._of_all):
            each.add(-1)
        self._checks += 1
        try:
            known = self._authenticator.knows(user)
            check = PasswordCheck(user, known, self._authenticator.secret_of(user), password)
            is_right = await asyncio.get_running_loop().run_in_executor(self._threads, check.is_right)
        finally:
            self._checks -= 1
        if not is_right:
            return PasswordResult.WRONG
        for each in (bucket, self._of_all):
            each.add(1)
        self._remember(digest)
        return PasswordResult.RIGHT

    def _digest(self, user: str, password: str) -> bytes:
        # No user's name has a NUL.
        return hmac.digest(self._key, f"{user}\0{password}".encode(errors="surrogatepass"), hashlib.sha256)

    def _bucket(self, user: str, now: float) -> _TryBucket:
        bucket = self._by_name.pop(user, None) or _TryBucket(TRIES, 1 / TRY_S, now)
        self._by_name[user] = bucket
        if len(self._by_name) > MAX_NAMES:
            del self._by_name[next(iter(self._by_name))]
        return bucket

    def _remember(self, digest: bytes) -> None:
        self._right_until.pop(digest, None)
        while len(self._right_until) >= MAX_RIGHT:
            del self._right_until[next(iter(self._right_until))]
        self._right_until[digest] = self._clock() + RIGHT_S

"""Checks the passwords of the topology's users: in threads, with few tries, and a right one again without a new check.

To check a password takes milliseconds by design. So checks run in threads, a few at a time; a request that finds too
many before it is refused at once. Each failure costs a try of the user's name at the source of the request, and a try
of the source, and both have few; so nobody guesses passwords fast, and nobody shuts out who logs in from elsewhere. A
password that was right is known for a minute by a keyed hash. Later it is checked again, and needs no try that is left:
whoever knows it guesses nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final

from wire.sasl.authenticator import Authenticator, PasswordCheck

THREADS: Final = 2
MAX_CHECKS: Final = 16
"""The most checks that run, or wait for a thread."""
MAX_CHECKS_OF_SOURCE: Final = 8
"""The most of them for requests from one source."""
TRIES: Final = 5
"""Failures of one name from one source at once; one more failure is allowed each TRY_S."""
TRY_S: Final = 10.0
SOURCE_TRIES: Final = 50
"""Failures of all names from one source that may come at once; SOURCE_TRIES_PER_S lasting."""
SOURCE_TRIES_PER_S: Final = 5.0
MAX_COUNTED: Final = 10_000
"""The most names and sources whose tries are counted; the one that was tried longest ago is forgotten."""
RIGHT_S: Final = 60.0
"""For how long a right password needs no check."""
MAX_RIGHT: Final = 1000
"""The most right passwords that are known; the one that was right longest ago is forgotten."""
MAX_PASSWORD_CHARS: Final = 1024
"""A longer password is wrong without a check."""


class PasswordResult(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    BUSY = "busy"
    """Too many other checks wait."""
    LIMITED = "limited"
    """Too many passwords of this name, or of all names, from this source were wrong."""


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
        self._checks: Counter[str] = Counter()
        self._key = secrets.token_bytes(32)
        self._right_until: dict[bytes, float] = {}
        self._buckets: dict[bytes, _TryBucket] = {}

    @property
    def has_users(self) -> bool:
        return self._authenticator.has_users

    async def check(self, user: str, password: str, source: str) -> PasswordResult:
        """Check the password of ``user`` in a request from ``source``, a name that shares its tries."""
        if len(password) > MAX_PASSWORD_CHARS:
            return PasswordResult.WRONG
        now = self._clock()
        digest = self._digest("right", user, password)
        if now < self._right_until.get(digest, now):
            return PasswordResult.RIGHT
        buckets = [] if digest in self._right_until else self._buckets_of(user, source, now)
        if not all(bucket.has_one(now) for bucket in buckets):
            return PasswordResult.LIMITED
        if self._checks.total() >= MAX_CHECKS or self._checks[source] >= MAX_CHECKS_OF_SOURCE:
            return PasswordResult.BUSY
        # A try is taken before the check, or tries at the same moment would not count.
        for each in buckets:
            each.add(-1)
        self._checks[source] += 1
        try:
            known = self._authenticator.knows(user)
            check = PasswordCheck(user, known, self._authenticator.secret_of(user), password)
            is_right = await asyncio.get_running_loop().run_in_executor(self._threads, check.is_right)
        finally:
            self._checks[source] -= 1
            if not self._checks[source]:
                del self._checks[source]
        if not is_right:
            return PasswordResult.WRONG
        for each in buckets:
            each.add(1)
        self._remember(digest)
        return PasswordResult.RIGHT

    def _digest(self, *texts: str) -> bytes:
        # No user's name has a NUL.
        return hmac.digest(self._key, "\0".join(texts).encode(errors="surrogatepass"), hashlib.sha256)

    def _buckets_of(self, user: str, source: str, now: float) -> list[_TryBucket]:
        """Return the tries of ``user`` at ``source``, and those of ``source``: by digests, as names can be long."""
        return [
            self._bucket(self._digest("name", source, user), TRIES, 1 / TRY_S, now),
            self._bucket(self._digest("source", source), SOURCE_TRIES, SOURCE_TRIES_PER_S, now),
        ]

    def _bucket(self, key: bytes, most: float, per_s: float, now: float) -> _TryBucket:
        bucket = self._buckets.pop(key, None) or _TryBucket(most, per_s, now)
        self._buckets[key] = bucket
        if len(self._buckets) > MAX_COUNTED:
            del self._buckets[next(iter(self._buckets))]
        return bucket

    def _remember(self, digest: bytes) -> None:
        self._right_until.pop(digest, None)
        while len(self._right_until) >= MAX_RIGHT:
            del self._right_until[next(iter(self._right_until))]
        self._right_until[digest] = self._clock() + RIGHT_S

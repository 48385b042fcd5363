"""Secrets of users for authentication, looked up so that a client cannot find out which users exist.

An unknown user gets a decoy secret: same form, same cost, one salt for one name, and no password that fits. So neither
the server's first message in SCRAM nor the time of a PLAIN login tells a known user from an unknown user.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from addressing.topology.credentials import DEFAULT_ITERATIONS, Secret, verify_password


class Authenticator:
    """The SCRAM secrets of a mesh's users. Without users, a server offers no SASL mechanism that takes a password."""

    def __init__(self, secrets: Mapping[str, Secret]) -> None:
        self._secrets = dict(secrets)
        # The key of decoys is made from all secrets, so that every router, also after a restart, gives an unknown user
        # the same salt.
        keys = b"".join(secrets[user].server_key for user in sorted(secrets))
        self._decoy_key = hashlib.sha256(b"decoy" + keys).digest()
        self._iterations = sorted({secret.iterations for secret in secrets.values()}) or [DEFAULT_ITERATIONS]

    @property
    def has_users(self) -> bool:
        return bool(self._secrets)

    def knows(self, user: str) -> bool:
        return user in self._secrets

    def secret_of(self, user: str) -> Secret:
        return self._secrets.get(user) or self._decoy(user)

    def _decoy(self, user: str) -> Secret:
        salt = self._derive("salt", user)
        iterations = self._iterations[salt[-1] % len(self._iterations)]
        return Secret(iterations, salt[:16], self._derive("stored", user), self._derive("server", user))

    def _derive(self, purpose: str, user: str) -> bytes:
        return hmac.digest(self._decoy_key, f"{purpose}:{user}".encode(), "sha256")


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """A password to check against a secret.

    ``is_right`` takes milliseconds, without Python's global lock, so callers run it in a thread.
    """

    user: str
    is_known: bool
    secret: Secret = field(repr=False)
    password: str = field(repr=False)

    def is_right(self) -> bool:
        return verify_password(self.secret, self.password) and self.is_known

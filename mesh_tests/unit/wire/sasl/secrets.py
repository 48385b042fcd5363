"""Users with real secrets, made once: the salt and the few iterations that SCRAM allows."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from wire.sasl import Authenticator

ITERATIONS = 4096


@dataclass(frozen=True)
class Secret:
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def secret(password: str) -> Secret:
    salt = hashlib.sha256(password.encode()).digest()[:16]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Secret(ITERATIONS, salt, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


USERS = Authenticator({"alice": secret("wonder"), "bob": secret("builder")})

"""SCRAM-SHA-256 secrets, by which a server checks a password without storing it, in the text form of PostgreSQL.

    SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>        salt and keys in base64

Spec: SCRAM [RFC 5802], SCRAM-SHA-256 [RFC 7677], SASLprep [RFC 4013].
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

from addressing.errors import BadValue

MECHANISM = "SCRAM-SHA-256"

# With SCRAM the client pays for the iterations; with PLAIN the router does, on its one thread for passwords, at each
# login. 15,000 are about 4 ms there: four times dearer to guess than the minimum of 4,096 [RFC 7677 4], and 250 logins
# a second still pass. The 600,000 that are advised for web logins would take that thread 150 ms per login.
DEFAULT_ITERATIONS = 15_000
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 10_000_000
_SALT_BYTES = 16
_KEY_BYTES = 32

_FORM = re.compile(r"SCRAM-SHA-256\$([0-9]{1,9}):([^$:]+)\$([^$:]+):([^$:]+)")


class SecretError(BadValue):
    """A text is not a SCRAM-SHA-256 secret, or SASL does not allow a password.

    The error's message never repeats the text, which may be a plain password.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "AM501")


@dataclass(frozen=True, slots=True)
class Secret:
    """The server's data for one password, parsed: enough to check the password, not enough to log in."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return f"Secret(iterations={self.iterations})"


def make_secret(password: str, *, iterations: int = DEFAULT_ITERATIONS, salt: bytes | None = None) -> str:
    """Return the text of a new secret for ``password``, the value of a user's key ``password`` in the topology file.

    Raise SecretError for a password that SASL does not allow.
    """
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    return str(_derive(password, salt, iterations))


def parse_secret(text: str) -> Secret:
    """Return the secret with this text; raise SecretError, which names the wrong part, for any other text."""
    found = _FORM.fullmatch(text)
    if not found:
        raise SecretError(
            f"expected a secret {MECHANISM}$<iterations>:<salt>$<StoredKey>:<ServerKey>, not a plain password"
        )
    iterations = int(found[1])
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise SecretError(f"expected a secret of {MIN_ITERATIONS} to {MAX_ITERATIONS} iterations, got {iterations}")
    salt = _decode("salt", found[2])
    stored_key, server_key = _decode_key("StoredKey", found[3]), _decode_key("ServerKey", found[4])
    return Secret(iterations, salt, stored_key, server_key)


def check_secret(text: str) -> str:
    """Return ``text``; raise SecretError if ``text`` is not a secret."""
    parse_secret(text)
    return text


def verify_password(secret: Secret, password: str) -> bool:
    """Say whether ``password`` is the password of ``secret``, comparing in constant time.

    A password that SASL does not allow is wrong.
    """
    try:
        attempt = _derive(password, secret.salt, secret.iterations)
    except SecretError:
        return False
    return hmac.compare_digest(attempt.stored_key, secret.stored_key)


def prepare_password(password: str) -> bytes:
    """Return the bytes of a password in SASLprep form, in which clients and servers hash passwords. [RFC 4013]

    Raise SecretError for a password that SASLprep does not allow.
    """
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared:
        raise SecretError("the password is empty, or has only characters that SASL drops")
    if any(_is_prohibited(c) for c in prepared):
        raise SecretError("the password has a character that SASL does not allow, such as a control character")
    _check_direction(prepared)
    return prepared.encode()


def _derive(password: str, salt: bytes, iterations: int) -> Secret:
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return Secret(iterations, salt, hashlib.sha256(client_key).digest(), server_key)


def _decode(part: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SecretError(f"malformed secret: the {part} is not base64") from None


def _decode_key(part: str, text: str) -> bytes:
    key = _decode(part, text)
    if len(key) != _KEY_BYTES:
        raise SecretError(f"malformed secret: expected {_KEY_BYTES} bytes of {part}, got {len(key)}")
    return key


_PROHIBITED_TABLES = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def _is_prohibited(c: str) -> bool:
    return any(is_in_table(c) for is_in_table in _PROHIBITED_TABLES)


def _check_direction(text: str) -> None:
    """Raise SecretError for a password that mixes right-to-left and left-to-right letters. [RFC 3454 6]

    A password with right-to-left letters must also begin and end with such a letter.
    """
    if not any(stringprep.in_table_d1(c) for c in text):
        return
    is_framed = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not is_framed or any(stringprep.in_table_d2(c) for c in text):
        raise SecretError("the password mixes right-to-left and left-to-right letters in a way SASL does not allow")

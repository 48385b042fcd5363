"""Parses the URL of a server and address: `[amqp[s]:][//[user[:pass]@]host[:port]/]address`.

User, password, host and address may be percent-encoded. A missing part is None, a missing address an empty text; the
caller fills in the default.
A text without scheme and without `//` is an address as it stands, not decoded, even if it begins with one `/`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

SCHEMES = ("amqp", "amqps")
# Addresses that the mesh makes up for dynamic sources begin so: the whole text is an address, with `amqp:`, and no URL.
DYNAMIC = "amqp:/_topo/"
DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671}


@dataclass(frozen=True, slots=True)
class AmqpUrl:
    address: str
    scheme: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def is_tls(self) -> bool:
        return self.scheme == "amqps"


def parse_url(text: str, *, needs_address: bool = True) -> AmqpUrl:
    """Parse ``text`` as a URL or as a mere address; with ``needs_address``, a URL with a host needs a `/` behind the
    host. Raises ValueError for any other text; the message never contains the password.
    """
    if text.startswith(DYNAMIC):
        return AmqpUrl(text)
    scheme, rest = _split_scheme(text)
    if not rest.startswith("//"):
        # `amqp:orders` is a URL, so its address is decoded; `orders` alone is an address as it stands.
        return AmqpUrl(_unquote(rest, "address") if scheme else rest, scheme)
    authority, slash, address = rest[2:].partition("/")
    if not slash and needs_address:
        raise ValueError(f"the URL's host {_masked(authority)!r} has no address behind it: expected //host/address")
    login, _, where = authority.rpartition("@")
    user, colon, password = login.partition(":")
    try:
        host, port = _split_port(where)
    except ValueError:
        if "@" not in address:
            raise
        # A '/' in the password was taken for the end of the host: say so, without showing a part of the password.
        raise ValueError("unexpected '@' after the '/' that ends the host: write a '/' in a password as %2F") from None
    return AmqpUrl(
        _unquote(address, "address"),
        scheme,
        host or None,
        port,
        _unquote(user, "user") or None,
        _unquote(password, "password") if colon else None,
    )


def _split_scheme(text: str) -> tuple[str | None, str]:
    head, colon, rest = text.partition(":")
    if colon and head.lower() in SCHEMES:
        return head.lower(), rest
    if colon and rest.startswith("//"):
        raise ValueError(f"unknown scheme {head!r}: expected amqp or amqps")
    return None, text


def _split_port(where: str) -> tuple[str, int | None]:
    if where.startswith("["):
        host, closed, tail = where[1:].partition("]")
        if not closed:
            raise ValueError(f"{where!r} has no ']' after the IPv6 address")
        colon, port = tail[:1], tail[1:]
    else:
        host, colon, port = where.partition(":")
        host = _unquote(host, "host")
    if not colon:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{port!r} is not a valid port: expected a number from 1 to 65535")
    return host, int(port)


def _unquote(text: str, part: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"the percent-encoded {part} of the URL is not UTF-8") from None


def _masked(authority: str) -> str:
    return authority.rpartition("@")[2]

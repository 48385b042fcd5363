"""The ``url`` of an existing broker (one not embedded), parsed: host and port, and the user as which routers log in."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from addressing.errors import BadValue

AMQP_PORT = 5672
AMQPS_PORT = 5671


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """The URL of an existing broker, parsed. The value as text never shows the password."""

    host: str
    port: int
    is_tls: bool
    user: str | None
    password: str | None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'amqps' if self.is_tls else 'amqp'}://{user}{host}:{self.port}"

    __repr__ = __str__


def parse_broker_url(url: str) -> BrokerUrl:
    """Return the parts of a URL ``amqp[s]://[user[:password]@]host[:port]``; without a port, the default of the scheme.

    Raise BadValue for any other text; the error's message never shows the password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadValue("malformed broker URL: expected an IPv6 address in the [brackets]", "AM302") from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise BadValue("malformed broker URL: expected a port from 1 to 65535", "AM302")
    if parts.scheme not in ("amqp", "amqps"):
        raise BadValue(
            f"expected a broker URL amqp://host:port or amqps://host:port, got the scheme {parts.scheme!r}", "AM302"
        )
    if not parts.hostname:
        raise BadValue("the broker URL has no host: expected amqp://host:port", "AM302")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadValue(
            "expected nothing after host and port of the broker URL: a prefix of addresses goes into address_prefix, a "
            "virtual host into hostname",
            "AM302",
        )
    is_tls = parts.scheme == "amqps"
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    return BrokerUrl(parts.hostname, port or (AMQPS_PORT if is_tls else AMQP_PORT), is_tls, user, password)

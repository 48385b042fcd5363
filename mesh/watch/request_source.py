"""Where a request comes from: the address of its connection, or the one that a reverse proxy on this host names.

The observer listens on 127.0.0.1 only, so each connection comes from this host. A proxy names the address of its client
as the last one of `X-Forwarded-For`; earlier ones are what the client said itself. A process of this host can name any
address there: so the address divides what each may take, and gives no right.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Scope

THIS_HOST: Final = "this host"
"""The source of all requests from loopback addresses, of which each process has as many as it likes."""
SITE_BITS: Final = 64
"""The part of an IPv6 address that is of a site; a client has all addresses of its site [RFC 6177]."""


class RequestSource(NamedTuple):
    """``peer`` names the place in the audit. ``name`` is the same for all requests that share a limit."""

    peer: str
    name: str


def request_source(scope: Scope, headers: Headers) -> RequestSource:
    """Return where the request with this ``scope`` of ASGI comes from."""
    host, port = scope.get("client") or ("", 0)
    peer = f"{host}:{port}"
    forwarded = _address(headers.getlist("x-forwarded-for")[-1:])
    if forwarded is None:
        return RequestSource(peer, _name_of(_address([str(host)])))
    return RequestSource(f"{forwarded} by the proxy at {peer}", _name_of(forwarded))


def _address(texts: list[str]) -> IPv4Address | IPv6Address | None:
    """Return the last address of the last header, or None if there is none, or it is not an address."""
    for text in texts:
        try:
            found = ip_address(text.rpartition(",")[2].strip())
        except ValueError:
            return None
        return getattr(found, "ipv4_mapped", None) or found
    return None


def _name_of(address: IPv4Address | IPv6Address | None) -> str:
    if address is None or address.is_loopback:
        return THIS_HOST
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), SITE_BITS), strict=False))
    return str(address)

"""Addresses as text: normal form, internal addresses, and dynamic reply addresses.

``x``, ``amqp:x``, ``amqp:/x`` and ``amqp://host/x`` name the address ``x``. A leading slash is otherwise part of the
address: ``/queues/x`` is not ``queues/x``.
"""

from __future__ import annotations

import re

MESH_PREFIX = "_amqpmesh/"
PROBE_PREFIX = "_amqpmesh/probe/"
BROKER_PREFIX = "_amqpmesh/broker/"
CONTROL_ADDRESS = "_amqpmesh/control"
"""Address of operators' requests to an embedded broker, at the broker's own port only: routers know no such address."""
ROUTER_PREFIX = "_topo/"
AREA_PREFIX = "_topo/0/"

_URL_FORM = re.compile(r"amqps?:(?://[^/]*)?/?", re.IGNORECASE)
_DYNAMIC = re.compile(r"_topo/0/([^/]+)/(temp|open)(-topic)?\..+", re.DOTALL)


def normalize(address: str) -> str:
    """Return ``address`` without the scheme and host that some clients put before it."""
    # The first letter nearly always decides: the function runs for each message of an anonymous sender.
    if address[:1] in "aA":
        found = _URL_FORM.match(address)
        if found:
            return address[found.end() :]
    return address


def is_internal(address: str) -> bool:
    """Say whether a normal ``address`` belongs to the mesh itself and cannot be declared by users."""
    return address.startswith((MESH_PREFIX, ROUTER_PREFIX)) or address in ("_amqpmesh", "_topo")


def dynamic_address(router_id: str, token: str, *, is_topic: bool = False, is_open: bool = False) -> str:
    """Name a dynamic address that every router knows how to route: to ``router_id``.

    Any client that knows the address may send to it, so ``token`` should be hard to guess. A message for a topic goes
    to every consumer there, any other message to one consumer. From an open address, any client that knows the address
    may also receive.
    """
    return f"amqp:/{AREA_PREFIX}{router_id}/{'open' if is_open else 'temp'}{'-topic' if is_topic else ''}.{token}"


def is_dynamic(address: str) -> bool:
    return _DYNAMIC.fullmatch(normalize(address)) is not None


def is_dynamic_topic(address: str) -> bool:
    found = _DYNAMIC.fullmatch(normalize(address))
    return found is not None and found[3] is not None


def is_open(address: str) -> bool:
    """Say whether ``address`` is dynamic and made by a sender, so that other clients are meant to receive from it."""
    found = _DYNAMIC.fullmatch(normalize(address))
    return found is not None and found[2] == "open"


def router_of(address: str) -> str | None:
    """Return the router that owns the dynamic ``address``; None for any other address."""
    found = _DYNAMIC.fullmatch(normalize(address))
    return found[1] if found else None

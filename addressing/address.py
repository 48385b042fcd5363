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
    """Return ``address`` in normal form: without the scheme ``amqp:`` and the host that some clients put before it."""
    # Test the first letter before the regular expression, since this function runs for each message of a sender whose
    # link has no address; the letter decides nearly always.
    if address[:1] in "aA":
        found = _URL_FORM.match(address)
        if found:
            return address[found.end() :]
    return address


def is_internal(address: str) -> bool:
    """Say whether ``address``, in normal form, belongs to the mesh itself, so that no topology file may declare it."""
    return address.startswith((MESH_PREFIX, ROUTER_PREFIX)) or address in ("_amqpmesh", "_topo")


def dynamic_address(router_id: str, token: str, *, is_topic: bool = False, is_open: bool = False) -> str:
    """Return a new dynamic address; the name contains ``router_id``, the router to which all routers pass its messages.

    Any client that knows the address may send to it, so ``token`` should be hard to guess. With ``is_topic``, a message
    goes to every consumer at the address, else to one consumer. With ``is_open``, any client that knows the address may
    also receive from it.
    """
    return f"amqp:/{AREA_PREFIX}{router_id}/{'open' if is_open else 'temp'}{'-topic' if is_topic else ''}.{token}"


def is_dynamic(address: str) -> bool:
    return _DYNAMIC.fullmatch(normalize(address)) is not None


def is_dynamic_topic(address: str) -> bool:
    found = _DYNAMIC.fullmatch(normalize(address))
    return found is not None and found[3] is not None


def is_open(address: str) -> bool:
    """Say whether ``address`` is a dynamic address made for a sender, so that other clients may receive from it."""
    found = _DYNAMIC.fullmatch(normalize(address))
    return found is not None and found[2] == "open"


def router_of(address: str) -> str | None:
    """Return the router that owns the dynamic ``address``; None for any other address."""
    found = _DYNAMIC.fullmatch(normalize(address))
    return found[1] if found else None

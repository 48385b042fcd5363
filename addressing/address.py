"""Addresses: a name within a space, the text of an address, normal form, internal addresses, dynamic reply addresses.

A client names an address within the space of its connection. From the client's edge inwards an address is an `Address`,
and `Address.text` and `Address.parse` are the only places that format and parse the address as one text: for names of
queues at brokers, for routing keys, circuit specs, rows of stores and records of link logs. In the default space the
text is the bare name. In any other space the text begins with `SPACE_PREFIX`, which belongs to the mesh itself, so that
no client and no topology file can name the address of another space.

``x``, ``amqp:x``, ``amqp:/x`` and ``amqp://host/x`` name the address ``x``. A leading slash is otherwise part of the
address: ``/queues/x`` is not ``queues/x``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_SPACE = ""
"""The space of all connections and addresses today. Tenants will have spaces of their own."""
MESH_PREFIX = "_amqpmesh/"
PROBE_PREFIX = "_amqpmesh/probe/"
BROKER_PREFIX = "_amqpmesh/broker/"
CONTROL_ADDRESS = "_amqpmesh/control"
"""Address of operators' requests to an embedded broker, at the broker's own port only: routers know no such address."""
OBSERVERS = "_amqpmesh/observe"
"""Multicast address at which the observers of all hosts of a mesh say that they are there."""
OBSERVER_PREFIX = "_amqpmesh/observe/"
"""Begins the addresses at which one observer answers: ``_amqpmesh/observe/<host>``."""
SPACE_PREFIX = "_amqpmesh/space/"
"""Begins the text of an address of another space than the default space: ``_amqpmesh/space/<space>/<name>``."""
ROUTER_PREFIX = "_topo/"
AREA_PREFIX = "_topo/0/"

_URL_FORM = re.compile(r"amqps?:(?://[^/]*)?/?", re.IGNORECASE)
_DYNAMIC = re.compile(r"_topo/0/([^/]+)/(temp|open)(-topic)?\..+", re.DOTALL)


class Address(NamedTuple):
    """An address of the mesh: a name within a space. Equal names in two spaces are two addresses.

    Always: ``space`` is `DEFAULT_SPACE` or has passed `addressing.names.check_space_name`, so it contains no slash.
    """

    space: str
    name: str
    """The name in normal form, as clients of the space use the name."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that ``text`` stands for; ``text`` is in normal form, as the property `text` writes it.

        A text that begins with `SPACE_PREFIX`, but has no slash after a space, is a name of the default space, which no
        topology file can declare.
        """
        if not text.startswith(SPACE_PREFIX):
            return cls(DEFAULT_SPACE, text)
        space, delimiter, name = text[len(SPACE_PREFIX) :].partition("/")
        return cls(space, name) if delimiter else cls(DEFAULT_SPACE, text)

    @property
    def text(self) -> str:
        """The address as one text, unequal to the texts of all other addresses; the bare name in the default space."""
        space, name = self
        # A name of the default space that begins with the prefix gets an empty space in its text, so that no client of
        # the default space can write the text of an address of another space.
        if space or name.startswith(SPACE_PREFIX):
            return f"{SPACE_PREFIX}{space}/{name}"
        return name

    @property
    def is_internal(self) -> bool:
        """Say whether the address belongs to the mesh itself, in whichever space."""
        return is_internal(self.name)


def normalize(address: str) -> str:
    """Return ``address`` in normal form: without the scheme (``amqp:``, ``amqps:``) and host that some clients add.

    The normal form of a normal form is the same: an address that begins with several schemes loses all of them, or it
    could be checked as one address and delivered as another.
    """
    # Test the first letter before the regular expression, since this function runs for each message of a sender whose
    # link has no address; the letter decides nearly always.
    if address[:1] in "aA":
        while found := _URL_FORM.match(address):
            address = address[found.end() :]
    return address


def is_internal(address: str) -> bool:
    """Say whether ``address``, in normal form, belongs to the mesh itself, so that no topology file may declare it."""
    return address.startswith((MESH_PREFIX, ROUTER_PREFIX)) or address in ("_amqpmesh", "_topo")


def dynamic_address(router_id: str, token: str, *, is_topic: bool = False, is_open: bool = False) -> str:
    """Return a new dynamic address, with the scheme ``amqp:``, at the router ``router_id``, which its name contains.

    All routers pass messages for the address to that router.
    Any client that knows the address may send to it, so ``token`` should be hard to guess. With ``is_topic``, a message
    goes to every consumer at the address, else to one consumer. With ``is_open``, any client that knows the address may
    also receive from it.
    """
    return f"amqp:/{AREA_PREFIX}{router_id}/{'open' if is_open else 'temp'}{'-topic' if is_topic else ''}.{token}"


def _parts(address: str) -> re.Match[str] | None:
    """Return the parts of a dynamic address; None for any other address."""
    # The prefix decides nearly always, and costs a tenth of the regular expression: an attach asks several times.
    name = normalize(address)
    return _DYNAMIC.fullmatch(name) if name.startswith(AREA_PREFIX) else None


def is_dynamic(address: str) -> bool:
    return _parts(address) is not None


def is_dynamic_topic(address: str) -> bool:
    found = _parts(address)
    return found is not None and found[3] is not None


def is_open(address: str) -> bool:
    """Say whether ``address`` is a dynamic address made for a sender, so that other clients may receive from it."""
    found = _parts(address)
    return found is not None and found[2] == "open"


def router_of(address: str) -> str | None:
    """Return the router that owns the dynamic ``address``; None for any other address."""
    found = _parts(address)
    return found[1] if found else None

"""Routing keys: the strings with which routers advertise takers, producers, brokers and edge routers to each other.

    head          key stands for
    M<phase>      takers of an anycast or of a sharded queue
    X<phase>      takers of a multicast
    S0            consumers of multicasts with this filter in their filter set (`addressing.narrowed_filters`)
    P0            producers of a multicast
    F0            the fallback queue of an address may hold messages
    F1            the router's part of a fallback queue is nearly empty: the address's producers should wait
    B:            a broker connected to the router
    E:            an edge router whose active uplink is the router

After the head comes a name: the text of an address, a broker or an edge router, or the parts of a filter. Edge routers
advertise keys of the forms M, X and S only, and ask for keys of the forms M and X. The routing core compares keys as
opaque strings; this module alone knows their syntax.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from addressing.address import Address

_MAX_PHASE = 9
_CACHED_NAMES = 1024


class KeyForm(Enum):
    """Kind of subject that a routing key names.

    The value is the head of the key, without the phase that follows the letters M and X.
    """

    TAKERS = "M"
    COPY_TAKERS = "X"
    SET_TAKERS = "S0"
    PRODUCERS = "P0"
    FALLBACK_HOLDS = "F0"
    FALLBACK_LOW = "F1"
    BROKER = "B:"
    EDGE = "E:"

    def __init__(self, head: str) -> None:
        self.head = head
        self.has_phase = len(head) == 1


class Key(NamedTuple):
    """A routing key in its parts: form, name and phase. Two keys have the same text only if the keys are equal."""

    form: KeyForm
    name: str
    """Text of an address, broker, edge router or filter of a set."""
    phase: int = 0
    """Phase of the address's group (1: the consumers of a queue on several brokers); 0 for a form without phases."""

    @classmethod
    def parse(cls, text: str) -> Key | None:
        """Return the key with this text, which another router sent; None for a malformed key, or an unknown form.

        A router of a later version may send keys of other forms.
        """
        found = _FORMS_BY_HEAD.get(text[:2])
        return cls(found[0], text[2:], found[1]) if found is not None and len(text) > 2 else None

    @property
    def address(self) -> Address:
        """The address that the key names, for a key that names no broker, no edge router and no filter of a set."""
        return Address.parse(self.name)

    @property
    def text(self) -> str:
        """The string that stands for the key in the messages between routers."""
        form, name, phase = self
        if not form.has_phase:
            return form.head + name
        # No router advertises a phase of several digits; the brackets around such a phase keep the text of its key
        # unequal to the texts of all other keys.
        return f"{form.head}{phase}{name}" if 0 <= phase <= _MAX_PHASE else f"{form.head}({phase}){name}"


_FORMS_BY_HEAD = {
    f"{form.head}{phase if form.has_phase else ''}": (form, phase)
    for form in KeyForm
    for phase in range(_MAX_PHASE + 1 if form.has_phase else 1)
}


_BROKER = KeyForm.BROKER.head


def producer_key(address: Address) -> str:
    """Return the key by which a router advertises that it has producers of the multicast ``address``."""
    return Key(KeyForm.PRODUCERS, address.text).text


def fallback_keys(address: Address) -> tuple[str, str]:
    """Return the two keys by which a router advertises that the fallback queue of ``address`` may hold messages, and
    that the router's part of the queue is nearly empty, so that the address's producers should wait.
    """
    return Key(KeyForm.FALLBACK_HOLDS, address.text).text, Key(KeyForm.FALLBACK_LOW, address.text).text


# The key of a broker is cached, because a router asks for the key with each link to the broker.
@lru_cache(_CACHED_NAMES)
def broker_key(broker: str) -> str:
    return Key(KeyForm.BROKER, broker).text


@lru_cache(_CACHED_NAMES)
def edge_key(edge: str) -> str:
    return Key(KeyForm.EDGE, edge).text


def names_broker(text: str) -> bool:
    """Say whether ``text``, which is a routing key, advertises that a broker is connected to a router."""
    return text.startswith(_BROKER)

"""Circuits whose spec does not fit the attach: a control message carries the spec and names the link.

The tree of a multicast over hundreds of routers takes more than one frame. An attach cannot be split, but a control
message can, because the message is a transfer. The message and the attach come over different sessions, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from router.routing.fields import text
from wire.link import Link

ANNOUNCED = "CIRCUIT"
"""Opcode of the control message. Its body: ``link``, the name of the link, and ``circuit``, the text of the spec."""
_MOST_WAITING = 10_000
"""Most specs kept without their link; beyond, all are forgotten. No neighbor that keeps to the protocol gets there."""


class AnnouncedCircuits:
    """Matches the circuit specs announced on one connection with their links, by the name of the link.

    ``on_circuit(link, circuit)`` is called with the link and the spec as text once both have arrived, in either order.
    """

    def __init__(self, on_circuit: Callable[[Link, str], None]) -> None:
        self._on_circuit = on_circuit
        self._links: dict[str, Link] = {}
        self._circuits: dict[str, str] = {}

    def on_attached(self, link: Link) -> None:
        circuit = self._circuits.pop(link.name, None)
        if circuit is not None:
            self._on_circuit(link, circuit)
            return
        self._links = {name: each for name, each in self._links.items() if not each.is_gone}
        self._links[link.name] = link

    def on_told(self, body: Mapping[str, Any]) -> None:
        """Match the circuit spec in a control message with the spec's link, or keep the spec until the link arrives.

        Raises ControlMessageError if the message is malformed.
        """
        name, circuit = text(body, "link"), text(body, "circuit")
        link = self._links.pop(name, None)
        if link is None:
            if len(self._circuits) >= _MOST_WAITING:
                self._circuits.clear()
            self._circuits[name] = circuit
        elif not (link.is_gone or link.has_left or link.has_peer_left):
            self._on_circuit(link, circuit)

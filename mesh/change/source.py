"""A topology with the places of its parts in a file, and with the ports that its nodes have in fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from addressing.topology.document import Document
    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class TopologySource:
    """A valid topology, and where it comes from.

    ``document``: its file with the places of all values; None for a topology that was made in memory, which has no
    places. ``ports``: by node, the port that counts in place of the file's, as a running node keeps its port.
    """

    topology: Topology
    document: Document | None = None
    ports: Mapping[str, int] = field(default_factory=dict)

    def port_of(self, node: str) -> int:
        """Return the port of a router or embedded broker for other nodes."""
        return self.ports.get(node) or self.file_port_of(node)

    def file_port_of(self, node: str) -> int:
        """Return the port of a router or embedded broker by the file alone, by its position if the file names none."""
        router = self.topology.routers.get(node)
        return router.port if router is not None else self.topology.brokers[node].port

    def declares_port(self, node: str) -> bool:
        """Tell whether the file names the port of a node, which is else the port by the node's position.

        Without places, every port counts as named.
        """
        return self.is_written("routers" if node in self.topology.routers else "brokers", node, "port")

    def is_written(self, *path: str | int) -> bool:
        """Tell whether the file has a value at ``path``. Without places, every value counts as written."""
        if self.document is None:
            return True
        spot = self.document.spots.get(path)
        return spot is not None and not spot.is_empty

    def line(self, *path: str | int) -> int | None:
        """Return the line, from 1, of the key or item at ``path``; None if the file does not have it."""
        if self.document is None or path not in self.document.spots:
            return None
        span = self.document.span(path, at_key=isinstance(path[-1], str))
        return span.line + 1 if span is not None else None


def kept_ports(before: TopologySource, after: TopologySource) -> dict[str, int]:
    """Return the port of each node of ``after``: nodes of ``before`` keep theirs, unless ``after`` names another.

    Ports by position move when a node is inserted before others, and no node may stop for that. A new node whose port
    by position belongs to a node that stays gets the next port that neither topology uses.
    """
    nodes = after.topology.node_names
    named = {node: after.port_of(node) for node in nodes if node in after.ports or after.declares_port(node)}
    taken = set(named.values()) | _ports_for_clients(after)
    ports = dict(named)
    here = set(before.topology.node_names)
    for node in nodes:
        if node not in named and node in here and before.port_of(node) not in taken:
            ports[node] = before.port_of(node)
            taken.add(ports[node])
    left = {before.port_of(node) for node in here} | _ports_for_clients(before)
    for node in nodes:
        if node not in ports:
            ports[node] = _free_port(after.file_port_of(node), taken | left)
            taken.add(ports[node])
    return ports


def _ports_for_clients(source: TopologySource) -> set[int]:
    topology = source.topology
    ports = {listener.port for router in topology.routers.values() for listener in router.listeners}
    return ports | ({topology.watch.port} if topology.watch.port is not None else set())


def _free_port(wanted: int, taken: set[int]) -> int:
    candidates = chain(range(wanted, 65_536), range(wanted - 1, 1023, -1))
    return next(port for port in candidates if port not in taken)

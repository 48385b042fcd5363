"""The nodes of a topology on one host, with the neighbors and paths that each router should have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mesh.deploy.neighborhood import expected_neighbors, reachable

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class ExpectedNode:
    """A node of the topology. ``role`` as in entity `node`; ``neighbors`` and ``egresses`` are of interior routers.

    ``egresses``: the other interior routers, to which the router has a path when all connections are up.
    """

    name: str
    role: str
    neighbors: tuple[str, ...] = ()
    egresses: tuple[str, ...] = ()


def expected_nodes(topology: Topology, names: Collection[str] | None = None) -> tuple[ExpectedNode, ...]:
    """Return the nodes ``names`` of ``topology``, or all that amqpmesh runs, in the order of the file."""
    neighbors = expected_neighbors(topology)

    def expected(name: str) -> ExpectedNode:
        if name in neighbors:
            return ExpectedNode(
                name, "router", tuple(sorted(neighbors[name])), tuple(sorted(reachable(name, neighbors)))
            )
        return ExpectedNode(name, "edge" if name in topology.routers else "broker")

    return tuple(expected(name) for name in topology.node_names if names is None or name in names)

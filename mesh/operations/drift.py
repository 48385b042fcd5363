"""Values of running nodes that operators set, and that differ from the topology file: costs, and levels of logs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mesh.change.observations import DriftedValue
from mesh.deploy.control import ask
from mesh.deploy.workdir import WorkDir

if TYPE_CHECKING:
    from addressing.topology.model import Topology

_LEVEL: Final = "info"
"""The lowest level of events that a node writes as it starts."""


@dataclass(frozen=True, slots=True)
class DriftedCost:
    """The cost of a connection that an operator set. ``started``: the cost of the file that `up` started with;
    ``declared``: that of the file as it is now; ``dialer`` declares the connection in that file.
    """

    dialer: str
    to: str
    started: int
    declared: int
    running: int

    @property
    def is_edited(self) -> bool:
        """Whether the file has been given another cost since `up`, too."""
        return self.declared != self.started

    def as_value(self) -> DriftedValue:
        command = f"amqpmesh cost {self.dialer} {self.to} {self.declared}"
        subject = f"cost of {self.dialer} - {self.to}"
        return DriftedValue(subject, str(self.declared), str(self.running), command)


def drifted_costs(started: Topology, wanted: Topology, nodes: Mapping[str, Any]) -> Iterator[DriftedCost]:
    """Yield the costs that differ from those of ``started``, and that the file, ``wanted``, does not have by now.

    ``nodes``: the observed state of routers, by name. A connection that the file no longer has is left out.
    """
    kept = {frozenset((edge.dialer, edge.to)): edge for edge in wanted.edges()}
    for edge in started.edges():
        now = kept.get(frozenset((edge.dialer, edge.to)))
        if now is None or started.routers[edge.dialer].is_edge:
            continue
        ends = ((edge.dialer, edge.to), (edge.to, edge.dialer))
        found = [
            nodes[one].neighbors[other].cost for one, other in ends if one in nodes and other in nodes[one].neighbors
        ]
        running = max((cost for cost in found if cost is not None), default=edge.cost)
        if running not in (edge.cost, now.cost):
            yield DriftedCost(now.dialer, now.to, edge.cost, now.cost, running)


def drifted_levels(workdir: WorkDir, nodes: Collection[str]) -> Iterator[DriftedValue]:
    """Yield the levels of logs of nodes that differ from the level of a node that starts."""
    for node in sorted(nodes):
        try:
            levels = ask(workdir.control_socket(node), "log_levels")
        except OSError:
            continue
        command = f"amqpmesh log-level {node} {_LEVEL}"
        for module, level in levels.items():
            if level != (_LEVEL if not module else levels.get("", _LEVEL)):
                subject = f"log level of {f'{module} at ' if module else ''}{node}"
                yield DriftedValue(subject, _LEVEL, level, command)

"""A kind of node: how its nodes are declared, addressed, run, ordered, proven ready and shown.

`node_kinds` has the table of the kinds. The topology file has a section for each kind, named by the plural of the
kind's name (`routers`, `brokers`); all nodes of a mesh have different names, across sections.

Every node, of any kind, holds `run/<name>.pid` while it lives, writes events to `log/<name>.jsonl`, and answers
`snapshot` at its control socket once its listeners are open: then the node is up.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wire.tls import Role

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.deploy.control import Handler
    from mesh.deploy.trip import Probe
    from wire.node_files import NodeFiles

Snapshot = Mapping[str, Any]
"""The state of a node for people and tests: ``node`` in the answer to `snapshot`."""
Note = Callable[[str, Snapshot | None], Iterator[str]]
"""Yields sentences for people, from the name and the snapshot of a node; the snapshot is None if the node is silent."""
OnStarted = Callable[[Mapping[str, "Handler"]], Awaitable[None]]
"""Takes the handlers of a node's control socket. To be awaited once the listeners of the node are open."""


@dataclass(frozen=True, slots=True)
class StatusCells:
    """Cells of a node in the table of `status` that follow from its snapshot."""

    kind: str
    neighbors: str = ""
    brokers: str = ""


class NodeKind(ABC):
    name: ClassVar[str]
    """The word for the kind in tables, events and JSON, such as `router`."""
    rank: ClassVar[int]
    """Nodes of a lower rank start before and stop after nodes of a higher rank."""
    role: ClassVar[Role | None]
    """Role of the nodes in certificates of the mesh; None for nodes without a certificate."""
    has_links: ClassVar[bool] = False
    """Whether snapshots of the nodes show connections without which the mesh is not ready."""
    notes: ClassVar[Mapping[str, Note]] = {}
    """Sentences of `status` about a node of the kind, by key of `status --json`."""

    @abstractmethod
    def declared(self, topology: Topology) -> Mapping[str, object]:
        """Return the entries of the kind's section by name, also entries that amqpmesh does not run."""

    def names(self, topology: Topology) -> tuple[str, ...]:
        """Return the names of the nodes that amqpmesh runs."""
        return tuple(self.declared(topology))

    @abstractmethod
    def ports(self, topology: Topology, name: str) -> Sequence[tuple[str, int]]:
        """Return the host and port of each listener. The first one is for other nodes and operators."""

    def data(self, topology: Topology, name: str) -> Path | None:
        """Return the folder for the node's own data, if the topology names a folder."""
        return None

    def command(self, name: str) -> tuple[str, ...]:
        """Return the arguments of `amqpmesh`, apart from the topology, that run the node in a process."""
        return ("node", name)

    @abstractmethod
    async def run(
        self, topology: Topology, name: str, files: NodeFiles, stop: asyncio.Event, on_started: OnStarted
    ) -> None:
        """Run the node in this process until ``stop`` is set.

        Raises MeshError, BindError, TlsSetupError or OSError if the node cannot run.
        """

    def missing_links(self, topology: Topology, snapshots: Mapping[str, Snapshot | None]) -> Iterator[str]:
        """Yield a sentence for each connection that the nodes lack. ``snapshots`` has the nodes of this kind."""
        yield from ()

    def probes(self, topology: Topology, token: str) -> Sequence[Probe]:
        """Return the probes that prove the nodes ready. ``token`` makes addresses of this start unique."""
        return ()

    def cells(self, snapshot: Snapshot | None) -> StatusCells:
        return StatusCells(self.name)


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node to start."""

    name: str
    kind: NodeKind

"""The interface of a kind of node: how its nodes are declared, addressed, run, ordered, probed and shown.

`node_kinds` has the table of the kinds. The topology file has a section for each kind, named by the plural of the
kind's name (`routers`, `brokers`); all nodes of a mesh have different names, across sections.

Every node, of any kind, holds a lock on `run/<name>.pid` while it lives, writes events to `log/<name>.jsonl`, and
answers `snapshot` at its control socket once its listeners are open: from then on the node counts as up.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wire.transport.tls import Role

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.deploy.control import Handler
    from mesh.deploy.trip import Probe
    from wire.node_files import NodeFiles

Snapshot = Mapping[str, Any]
"""The state of a node for people and tests: ``node`` in the answer to `snapshot`."""
Note = Callable[[str, Snapshot | None], Iterator[str]]
"""Yields sentences for people from the name and the snapshot of a node; the snapshot is None if none was answered."""
OnStarted = Callable[[Mapping[str, "Handler"]], Awaitable[None]]
"""Called by a node once its listeners are open, with the handlers of its control socket; opens the control socket."""


@dataclass(frozen=True, slots=True)
class StatusCells:
    """The cells of a node's row in the table of `status` that are computed from the node's snapshot."""

    kind: str
    neighbors: str = ""
    brokers: str = ""


class NodeKind(ABC):
    """A kind of node, such as router or broker; `mesh.deploy.node_kinds` has one object for each kind."""

    name: ClassVar[str]
    """The word for the kind in tables, events and JSON, such as `router`."""
    rank: ClassVar[int]
    """Nodes of a lower rank start before nodes of a higher rank, and stop after them."""
    role: ClassVar[Role | None]
    """The role that a certificate of the mesh names for nodes of this kind; None for nodes without a certificate."""
    has_links: ClassVar[bool] = False
    """Whether a mesh in phase LINKING waits for connections that snapshots of these nodes show."""
    notes: ClassVar[Mapping[str, Note]] = {}
    """What `status` says about nodes of this kind: a key of `status --json`, and the function that makes the text."""

    @abstractmethod
    def declared(self, topology: Topology) -> Mapping[str, object]:
        """Return the entries of this kind's section of the topology by name, also nodes that amqpmesh does not run."""

    def names(self, topology: Topology) -> tuple[str, ...]:
        """Return the names of the nodes of this kind that amqpmesh runs."""
        return tuple(self.declared(topology))

    @abstractmethod
    def ports(self, topology: Topology, name: str) -> Sequence[tuple[str, int]]:
        """Return the host and port of each listener of node ``name``; the first is the one for nodes and operators."""

    def data(self, topology: Topology, name: str) -> Path | None:
        """Return the folder for the node's own data that the topology names, or None if the topology names none."""
        return None

    @abstractmethod
    async def run(
        self, topology: Topology, name: str, files: NodeFiles, stop: asyncio.Event, on_started: OnStarted
    ) -> None:
        """Run the node in this process until ``stop`` is set; call ``on_started`` once the node's listeners are open.

        Raises MeshError, BindError, TlsSetupError or OSError if the node cannot run.
        """

    def missing_links(self, topology: Topology, snapshots: Mapping[str, Snapshot | None]) -> Iterator[str]:
        """Yield a sentence for each connection or path of the topology that is missing in ``snapshots``.

        ``snapshots`` has the nodes of this kind only; None stands for a node that does not answer.
        """
        yield from ()

    def probes(self, topology: Topology, token: str) -> Sequence[Probe]:
        """Return the probes that prove the nodes ready; ``token`` makes the probes' addresses unique to this start."""
        return ()

    def cells(self, snapshot: Snapshot | None) -> StatusCells:
        return StatusCells(self.name)


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node that amqpmesh runs: its name and kind."""

    name: str
    kind: NodeKind

"""Decides whether a mesh is ready: every connection of the topology is up, and probe messages went through.

linked   the snapshots of the nodes show every connection and path of the topology; the module of each kind of node,
         such as `router_kind`, says which
probed   the probes of every kind of node have succeeded (``mesh.deploy.probe``)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from addressing.topology.model import Topology
from mesh.deploy.control import ask_async
from mesh.deploy.node_kind import NodePlan, Snapshot
from mesh.deploy.node_kinds import NODE_KINDS, all_nodes
from mesh.deploy.polling import wait_until
from mesh.deploy.probe import Prober
from mesh.deploy.workdir import WorkDir


class MeshReadiness:
    def __init__(self, topology: Topology, workdir: WorkDir) -> None:
        self._topology = topology
        self._workdir = workdir
        self._missing: list[str] = []
        self._prober = Prober(topology)

    async def wait_linked(self) -> None:
        await wait_until(self._is_linked)

    async def wait_probed(self) -> None:
        await self._prober.wait_round_trip()

    def missing(self) -> str:
        return "; ".join(self._missing) or self._prober.missing()

    async def _is_linked(self) -> bool:
        nodes = [node for node in all_nodes(self._topology) if node.kind.has_links]
        answers = await asyncio.gather(*(self._ask(node.name) for node in nodes))
        self._missing = list(missing_links(self._topology, list(zip(nodes, answers, strict=True))))
        return not self._missing

    async def _ask(self, name: str) -> Snapshot | None:
        try:
            answer = await ask_async(self._workdir.control_socket(name), "snapshot")
        except OSError:
            return None
        snapshot: Snapshot = answer["node"]
        return snapshot


def missing_links(topology: Topology, found: Sequence[tuple[NodePlan, Snapshot | None]]) -> Iterator[str]:
    """Yield a sentence for each connection or path of the topology that is missing in the snapshots ``found``.

    None in place of a snapshot stands for a node that did not answer.
    """
    for kind in NODE_KINDS.values():
        snapshots = {node.name: snapshot for node, snapshot in found if node.kind is kind}
        yield from kind.missing_links(topology, snapshots)

"""Decides whether a mesh is ready: every connection is up, and probe messages went through.

linked   each interior router hears all neighbors of the topology, has a path to every interior router that the topology
         connects, and is connected to all its brokers; each edge router hears all uplinks, and has an active uplink
probed   probe messages went through every router and embedded broker (``mesh.deploy.probe``)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from addressing.topology.model import Topology
from mesh.deploy.control import ask_async
from mesh.deploy.neighborhood import expected_neighbors, reachable
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
        answers = await asyncio.gather(*(self._ask(name) for name in self._topology.routers))
        snapshots = dict(zip(self._topology.routers, answers, strict=True))
        self._missing = list(missing_links(self._topology, snapshots))
        return not self._missing

    async def _ask(self, router: str) -> Mapping[str, Any] | None:
        try:
            answer = await ask_async(self._workdir.control_socket(router), "snapshot")
        except OSError:
            return None
        node: Mapping[str, Any] = answer["node"]
        return node


def missing_links(topology: Topology, snapshots: Mapping[str, Mapping[str, Any] | None]) -> Iterator[str]:
    """Yield a sentence for each connection or path that is missing."""
    neighbors = expected_neighbors(topology)
    for router, snapshot in snapshots.items():
        if snapshot is None:
            yield f"{router} does not answer"
            continue
        views = {view["router"]: view for view in snapshot["routers"]}
        heard = {name for name, view in views.items() if view["is_neighbor"]}
        if topology.routers[router].is_edge:
            yield from missing_uplinks(topology, router, heard, snapshot["active_uplink"])
            continue
        yield from (f"{router} does not hear {neighbor}" for neighbor in sorted(neighbors[router] - heard))
        for other in sorted(reachable(router, neighbors)):
            if views.get(other, {}).get("path") is None:
                yield f"{router} has no path to {other}"
        yield from missing_brokers(topology, router, snapshot)


def missing_uplinks(topology: Topology, edge: str, heard: set[str], active: str | None) -> Iterator[str]:
    yield from (f"{edge} does not hear {uplink}" for uplink in topology.costs_at(edge) if uplink not in heard)
    if active is None:
        yield f"{edge} has no active uplink"


def missing_brokers(topology: Topology, router: str, snapshot: Mapping[str, Any]) -> Iterator[str]:
    found = {broker["broker"]: broker for broker in snapshot["brokers"]}
    for name in topology.brokers_at(router):
        broker = found.get(name)
        if broker is None or not broker["is_up"]:
            reason = broker["down_reason"] if broker is not None else None
            yield f"{router} has no connection to broker {name}" + (f" ({reason})" if reason else "")

"""Routers as a kind of node: how routers run, and the conditions under which the routers of a mesh are ready.

A mesh is ready when each interior router hears all neighbors of the topology, has a path to every interior router that
the topology connects with it, and is connected to all its brokers; when each edge router hears all its uplinks, of
which one is active; and when, in each group of routers that the topology connects, a probe message went from each
router to the next on `_amqpmesh/probe/<token>-<sender>`: r1 -> r2, r2 -> r3, ..., rn -> r1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from addressing.address import PROBE_PREFIX
from addressing.topology.plain import mark_of
from mesh.deploy.neighborhood import expected_neighbors, parts, reachable
from mesh.deploy.node_kind import NodeKind, OnStarted, Snapshot, StatusCells
from mesh.deploy.workdir import WorkDir
from wire import log
from wire.transport.tls import Role

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.deploy.trip import Trip
    from router.run import RunningRouter
    from wire.node_files import NodeFiles

EDGE = "edge"


class RouterKind(NodeKind):
    name: ClassVar[str] = "router"
    rank: ClassVar[int] = 1
    role: ClassVar[Role | None] = Role.ROUTER
    has_links: ClassVar[bool] = True

    def declared(self, topology: Topology) -> Mapping[str, object]:
        return topology.routers

    def ports(self, topology: Topology, name: str) -> Sequence[tuple[str, int]]:
        router = topology.routers[name]
        return [(router.host, router.port), *((listener.host, listener.port) for listener in router.listeners)]

    async def run(
        self, topology: Topology, name: str, files: NodeFiles, stop: asyncio.Event, on_started: OnStarted
    ) -> None:
        from mesh.deploy.decision_requests import decision_handlers
        from mesh.deploy.operator_requests import closing_handlers
        from mesh.deploy.revision_requests import node_handlers
        from mesh.deploy.trace_files import TraceFiles
        from router.run import run_router

        async def on_router_started(router: RunningRouter) -> None:
            def set_cost(request: Mapping[str, Any]) -> int:
                return router.set_cost(str(request.get("neighbor")), request.get("cost"))

            await on_started(
                {
                    "snapshot": lambda _: router.snapshot(),
                    "cost": set_cost,
                    "relist": lambda _: router.list_live(),
                    **closing_handlers(router),
                    **node_handlers(mark_of(topology), router, log.emit),
                    **decision_handlers(router),
                    "trace": TraceFiles(WorkDir(topology.work_dir), name, router.endpoint_of, log.emit).answer,
                }
            )

        await run_router(topology, name, files, stop, on_router_started)

    def missing_links(self, topology: Topology, snapshots: Mapping[str, Snapshot | None]) -> Iterator[str]:
        """Yield a sentence for each neighbor, path, uplink and broker connection of the topology that a router lacks,
        and for each router that does not answer.
        """
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

    def probes(self, topology: Topology, token: str) -> Sequence[Trip]:
        from mesh.deploy.trip import Trip

        return [
            Trip(here, there, f"{PROBE_PREFIX}{token}-{here}")
            for part in parts(topology)
            for here, there in zip(part, [*part[1:], part[0]], strict=True)
        ]

    def cells(self, snapshot: Snapshot | None) -> StatusCells:
        if snapshot is None:
            return StatusCells(self.name)
        heard = [view["router"] for view in snapshot["routers"] if view["is_neighbor"]]
        active = snapshot["active_uplink"]
        return StatusCells(
            EDGE if snapshot.get("mode") == EDGE else self.name,
            ",".join(f"{router} (active)" if router == active else router for router in heard),
            ",".join(broker["broker"] for broker in snapshot["brokers"] if broker["is_up"]),
        )


def missing_uplinks(topology: Topology, edge: str, heard: set[str], active: str | None) -> Iterator[str]:
    yield from (f"{edge} does not hear {uplink}" for uplink in topology.costs_at(edge) if uplink not in heard)
    if active is None:
        yield f"{edge} has no active uplink"


def missing_brokers(topology: Topology, router: str, snapshot: Snapshot) -> Iterator[str]:
    found = {broker["broker"]: broker for broker in snapshot["brokers"]}
    for name in topology.brokers_at(router):
        broker = found.get(name)
        if broker is None or not broker["is_up"]:
            reason = broker["down_reason"] if broker is not None else None
            yield f"{router} has no connection to broker {name}" + (f" ({reason})" if reason else "")

"""Changes nodes of this host by requests to their control sockets: ends of connections and links, costs, log levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mesh.watch.mesh_requests import MeshRequests, refused_by
from mesh.watch.write_request import WriteRefused, WriteRequest

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.watch.states import ObservedConnection, ObservedLink, ObservedNeighbor


class NodeWrites:
    """The changes of nodes of ``topology``."""

    def __init__(self, topology: Topology, requests: MeshRequests) -> None:
        self._topology, self._requests = topology, requests

    async def before(self, node: str, request: WriteRequest, state: Any) -> dict[str, Any]:
        """Return the present values that ``request`` would change; the node itself is asked for its log levels."""
        match request.operation.name:
            case "cost":
                return _shown(state, "cost")
            case "log-level":
                return {"levels": await self._ask(node, "log_levels", is_begun=False)}
            case "close-link":
                return _shown(state, "name", "address_text", "role", "user_name", "connection_id")
        return _shown(state, "user_name", "container", "remote_address", "role")

    async def after(self, node: str, request: WriteRequest) -> dict[str, Any] | None:
        """Return the changed values after the change; None if a connection or link ended, or a trace began."""
        match request.operation.name:
            case "cost":
                return {"cost": request.arguments["cost"]}
            case "log-level":
                try:
                    return {"levels": await self._ask(node, "log_levels", is_begun=False)}
                except WriteRefused:
                    return None
        return None

    def preview(self, request: WriteRequest, state: Any) -> dict[str, Any]:
        """Return the counts that ``request`` would have, without any change."""
        self._check(request, state)
        if request.operation.name == "close-connection":
            return {"connections": 1, "links": len(state.links)}
        return {request.operation.counts: 1, **request.arguments}

    async def run(self, node: str, request: WriteRequest, state: Any, operator: str) -> dict[str, Any]:
        """Carry out ``request`` at ``node``, for ``operator``, and return counts and results of the change."""
        self._check(request, state)
        arguments = request.arguments
        match request.operation.name:
            case "cost":
                return await self._set_cost(state, arguments["cost"])
            case "close-connection":
                await self._ask(node, "close_connection", connection=_number_of(state), operator=operator, **arguments)
                return {"connections": 1, "links": len(state.links)}
            case "close-link":
                connection = _number_of(state.connection)
                await self._ask(
                    node, "close_link", connection=connection, link=state.number, operator=operator, **arguments
                )
                return {"links": 1}
            case "trace":
                told = await self._ask(node, "trace", connection=_number_of(state), operator=operator, **arguments)
                return {"connections": 1, **(told if isinstance(told, Mapping) else {})}
        told = await self._ask(node, "log_level", operator=operator, **arguments)
        return {"modules": 1, **(told if isinstance(told, Mapping) else {})}

    def _check(self, request: WriteRequest, state: Any) -> None:
        if request.operation.name == "cost":
            ends = (state.node.name, state.neighbor)
            edge = next((name for name in ends if self._is_edge(name)), None)
            if edge is not None:
                raise WriteRefused(
                    409, f"{edge} is an edge router: the costs of its uplinks are those of the topology file"
                )
        if request.operation.name == "close-link" and state.connection is None:
            raise WriteRefused(409, "the connection of this link is not known yet: try again in a second")

    def _is_edge(self, name: str) -> bool:
        router = self._topology.routers.get(name)
        return router is not None and router.is_edge

    async def _set_cost(self, neighbor: ObservedNeighbor, cost: int) -> dict[str, Any]:
        """Set the cost at both routers, as the larger cost counts; if the second does not answer, at neither router."""
        one, other = neighbor.node.name, neighbor.neighbor
        before = int(await self._ask(one, "cost", neighbor=other, cost=cost))
        try:
            before_there = int(await self._ask(other, "cost", neighbor=one, cost=cost))
        except WriteRefused:
            await self._ask(one, "cost", neighbor=other, cost=before)
            raise
        return {"connections": 1, "cost": cost, "cost_before": max(before, before_there)}

    async def _ask(self, node: str, op: str, *, is_begun: bool = True, **arguments: Any) -> Any:
        with refused_by(node, is_begun=is_begun):
            return await self._requests.ask_node(node, op, **arguments)


def _number_of(connection: ObservedConnection) -> int:
    return int(connection.id.rpartition("/")[2])


def _shown(state: ObservedConnection | ObservedLink | ObservedNeighbor, *names: str) -> dict[str, Any]:
    found = {name.removesuffix("_text").removesuffix("_name"): getattr(state, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}

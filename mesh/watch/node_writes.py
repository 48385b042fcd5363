"""Changes nodes of this host by requests to their control sockets: ends of connections and links, costs, log levels.

A cost is set at both routers of a connection; the other router may be on another host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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
        """Carry out ``request`` at ``node``, for ``operator``, and return counts and results; `set_cost` sets costs."""
        self._check(request, state)
        arguments = request.arguments
        match request.operation.name:
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

    async def set_cost(
        self, request: WriteRequest, neighbor: ObservedNeighbor, set_other: Callable[[int], Awaitable[int]] | None
    ) -> dict[str, Any]:
        """Set the cost at both routers, as the larger cost counts; if the second does not answer, at neither router.

        ``set_other`` sets the cost at the second router, and returns the cost before; None leaves that router alone.
        """
        self._check(request, neighbor)
        one, other, cost = neighbor.node.name, neighbor.neighbor, request.arguments["cost"]
        before = before_there = await self.set_end(one, other, cost)
        if set_other is not None:
            try:
                before_there = await set_other(cost)
            except WriteRefused:
                await self.set_end(one, other, before)
                raise
        return {"connections": 1, "cost": cost, "cost_before": max(before, before_there)}

    async def set_end(self, node: str, neighbor: str, cost: int) -> int:
        """Set the cost at ``node`` only, and return the cost before. Raises WriteRefused."""
        return int(await self._ask(node, "cost", neighbor=neighbor, cost=cost))

    async def _ask(self, node: str, op: str, *, is_begun: bool = True, **arguments: Any) -> Any:
        with refused_by(node, is_begun=is_begun):
            return await self._requests.ask_node(node, op, **arguments)


def _number_of(connection: ObservedConnection) -> int:
    return int(connection.id.rpartition("/")[2])


def _shown(state: ObservedConnection | ObservedLink | ObservedNeighbor, *names: str) -> dict[str, Any]:
    found = {name.removesuffix("_text").removesuffix("_name"): getattr(state, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}

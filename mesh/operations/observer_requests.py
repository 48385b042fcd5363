"""The requests of the observer to the nodes of its mesh: to brokers, to control sockets, and through routers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mesh.client.connect import connected
from mesh.client.errors import TimedOut, Unreachable
from mesh.deploy.control import ask_async
from mesh.deploy.operator import node_server, servers_for_programs
from mesh.deploy.workdir import WorkDir
from mesh.operations.broker_control import ask_broker
from mesh.terminal.failure import CommandFailed
from wire.delivery import OutcomeCode

if TYPE_CHECKING:
    from addressing.topology.model import Topology

CONNECT_S = 5.0
OUTCOME_S = 10.0


class ObserverRequests:
    """Requests to the nodes of ``topology``, as `mesh.watch.mesh_requests.MeshRequests` has them."""

    def __init__(self, topology: Topology) -> None:
        self._topology, self._workdir = topology, WorkDir(topology.work_dir)

    async def ask_broker(self, broker: str, request: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        await ask_broker(self._topology, broker, request, parts)

    async def ask_node(self, node: str, op: str, **arguments: Any) -> Any:
        return await ask_async(self._workdir.control_socket(node), op, **arguments)

    async def send(self, routers: Sequence[str], address: str, message: bytes) -> str:
        last = Unreachable("the mesh has no router")
        for router in routers:
            try:
                await self._send(router, address, message)
            except _NoConnection as error:
                last = error.cause
                continue
            return router
        raise last

    async def _send(self, router: str, address: str, message: bytes) -> None:
        has_begun = False
        server = next(servers_for_programs(self._topology, router), None) or node_server(self._topology, router)
        try:
            async with connected(server, CONNECT_S) as client:
                sender = await client.sender(address)
                has_begun = True
                async with asyncio.timeout(OUTCOME_S):
                    outcome = await (await sender.send(message))
        except TimeoutError:
            raise TimedOut(
                f"no outcome of the message within {OUTCOME_S:g} s: nobody takes it, or the queue is full"
            ) from None
        except Unreachable as error:
            if has_begun:
                raise
            raise _NoConnection(error) from None
        if outcome is not None and outcome.kind is not OutcomeCode.ACCEPTED:
            told = outcome.error.description if outcome.error is not None else None
            raise CommandFailed(
                f"the message for {address} was {outcome.kind.name.lower()}" + (f": {told}" if told else "")
            )


class _NoConnection(Exception):
    """A router to which there is no connection, so that nothing was sent."""

    def __init__(self, cause: Unreachable) -> None:
        super().__init__(cause.message)
        self.cause = cause

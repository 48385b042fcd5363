"""Proves that a mesh is ready: makes the probes of all kinds of nodes until each has succeeded.

A probe is a message sent through nodes and received again. The module of each kind, such as `router_kind`, says which
probes the kind has.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack

from addressing.topology.model import Topology
from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import MeshError
from mesh.deploy.node_kinds import NODE_KINDS
from mesh.deploy.operator import node_server
from mesh.deploy.polling import wait_until
from mesh.deploy.trip import Probe

TRIP_TIMEOUT_S = 5.0


class Prober:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._left = probes_of(topology, secrets.token_hex(4))
        self._reason = ""

    async def wait_round_trip(self) -> None:
        """Return once every probe has succeeded; a failed probe is tried again, as routers may still learn paths.

        Raises MeshError if the client of a router cannot connect.
        """
        async with AsyncExitStack() as stack:
            clients = await self._connect_all(stack)
            for probe in list(self._left):
                await wait_until(lambda probe=probe: self._try(probe, clients))  # type: ignore[misc]
                self._left.remove(probe)

    def missing(self) -> str:
        if not self._left:
            return "nothing"
        return f"{self._left[0]} did not arrive" + (f" ({self._reason})" if self._reason else "")

    async def _connect_all(self, stack: AsyncExitStack) -> dict[str, Client]:
        clients = {}
        for router in self._topology.routers:
            server = node_server(self._topology, router)
            clients[router] = await stack.enter_async_context(connected(server, TRIP_TIMEOUT_S))
        return clients

    async def _try(self, probe: Probe, clients: dict[str, Client]) -> bool:
        try:
            async with asyncio.timeout(TRIP_TIMEOUT_S):
                await probe.make(clients)
        except TimeoutError:
            self._reason = f"not within {TRIP_TIMEOUT_S:g} s"
            return False
        except MeshError as error:
            self._reason = error.message
            return False
        return True


def probes_of(topology: Topology, token: str) -> list[Probe]:
    return [probe for kind in NODE_KINDS.values() for probe in kind.probes(topology, token)]

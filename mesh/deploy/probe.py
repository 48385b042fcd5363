"""Proves that a mesh is ready: probe messages go through every router and every embedded broker.

    routers   a message from each router to the next on `_amqpmesh/probe/<token>-<sender>`, so that each router is once
              a sender's and once a receiver's: r1 -> r2, r2 -> r3, ..., rn -> r1
    brokers   a message is stored on `_amqpmesh/broker/<name>/probe-<token>` and received again, where possible through
              routers that the broker is not attached to

The probe puts no messages into an existing broker: only the connection to it is checked (``mesh.deploy.readiness``).
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass

from addressing.address import BROKER_PREFIX, PROBE_PREFIX
from addressing.topology.model import Topology
from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import MeshError
from mesh.deploy.neighborhood import parts
from mesh.deploy.operator import router_server
from mesh.deploy.polling import wait_until
from mesh.terminal.failure import CommandFailed
from wire.delivery import ACCEPTED, Kind
from wire.message import Message, decode, encode

TRIP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Trip:
    """A probe message: sent at one router, received at another."""

    sender: str
    receiver: str
    address: str

    def __str__(self) -> str:
        return f"a probe from {self.sender} to {self.receiver} on {self.address}"


class Prober:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._left: list[Trip] = trips(topology, secrets.token_hex(4))
        self._reason = ""

    async def wait_round_trip(self) -> None:
        """Return once every trip has succeeded. A failed trip is tried again: the mesh may still be converging."""
        async with AsyncExitStack() as stack:
            clients = await self._connect_all(stack)
            for trip in list(self._left):
                await wait_until(lambda trip=trip: self._try(trip, clients))  # type: ignore[misc]
                self._left.remove(trip)

    def missing(self) -> str:
        if not self._left:
            return "nothing"
        return f"{self._left[0]} did not arrive" + (f" ({self._reason})" if self._reason else "")

    async def _connect_all(self, stack: AsyncExitStack) -> dict[str, Client]:
        clients = {}
        for router in self._topology.routers:
            server = router_server(self._topology, router)
            clients[router] = await stack.enter_async_context(connected(server, TRIP_TIMEOUT_S))
        return clients

    async def _try(self, trip: Trip, clients: dict[str, Client]) -> bool:
        try:
            async with asyncio.timeout(TRIP_TIMEOUT_S):
                await travel(trip, clients[trip.sender], clients[trip.receiver])
        except TimeoutError:
            self._reason = f"not within {TRIP_TIMEOUT_S:g} s"
            return False
        except MeshError as error:
            self._reason = error.message
            return False
        return True


def trips(topology: Topology, token: str) -> list[Trip]:
    circles = [
        Trip(here, there, f"{PROBE_PREFIX}{token}-{here}")
        for part in parts(topology)
        for here, there in zip(part, [*part[1:], part[0]], strict=True)
    ]
    return [*circles, *(broker_trip(topology, name, token) for name in topology.brokers if is_ours(topology, name))]


def is_ours(topology: Topology, broker: str) -> bool:
    return topology.brokers[broker].is_embedded


def broker_trip(topology: Topology, broker: str, token: str) -> Trip:
    attached = topology.routers_of(broker)
    part = next(part for part in parts(topology) if attached[0] in part)
    distant = [name for name in part if name not in attached] or list(attached)
    return Trip(distant[0], distant[-1], f"{BROKER_PREFIX}{broker}/probe-{token}")


async def travel(trip: Trip, origin: Client, goal: Client) -> None:
    """Send the message and receive it. Raises CommandFailed if the outcome is not accepted or another message came."""
    receiver = await goal.receiver(trip.address, credit=1)
    sender = await origin.sender(trip.address)
    try:
        receiver.top_up()
        token = secrets.token_hex(8)
        outcome = await sender.send(encode(Message(token)))
        received = await receiver.receive()
        receiver.settle(received, ACCEPTED)
        told = await outcome
        if told is None or told.kind is not Kind.ACCEPTED:
            raise CommandFailed(f"its outcome was {told.kind.name.lower() if told is not None else 'none'}")
        if decode(received.data).body != token:
            raise CommandFailed("what arrived is not what was sent")
    finally:
        sender.close()
        receiver.close()

"""Probes: a message that went through the mesh is the proof that nodes are ready."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mesh.client.client import Client
from mesh.terminal.failure import CommandFailed
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import Message, decode, encode


class Probe(Protocol):
    """A proof that nodes work; the text names the probe in "... did not arrive"."""

    async def make(self, clients: Mapping[str, Client]) -> None:
        """Send the probe, with a client at each router of the mesh. Raises MeshError if the probe failed."""


@dataclass(frozen=True, slots=True)
class Trip:
    """A probe message: sent at one router, received at another."""

    sender: str
    receiver: str
    address: str

    def __str__(self) -> str:
        return f"a probe from {self.sender} to {self.receiver} on {self.address}"

    async def make(self, clients: Mapping[str, Client]) -> None:
        await travel(self, clients[self.sender], clients[self.receiver])


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
        if told is None or told.kind is not OutcomeCode.ACCEPTED:
            raise CommandFailed(
                f"expected outcome accepted, got {told.kind.name.lower() if told is not None else 'none'}"
            )
        if decode(received.data).body != token:
            raise CommandFailed("the probe that arrived differs from the probe that was sent")
    finally:
        sender.close()
        receiver.close()

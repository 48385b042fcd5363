"""Probes, which prove that nodes are ready: the main probe sends a message at one router and receives it at another."""

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
    """A test that nodes pass messages on. Its `str` names the probe in error texts: "... did not arrive"."""

    async def make(self, clients: Mapping[str, Client]) -> None:
        """Make the probe by ``clients``, a client at each router, by the router's name. Raises MeshError if the probe
        failed.
        """


@dataclass(frozen=True, slots=True)
class Trip:
    """A probe: a message to ``address``, sent at router ``sender`` and received at router ``receiver``."""

    sender: str
    receiver: str
    address: str

    def __str__(self) -> str:
        return f"a probe from {self.sender} to {self.receiver} on {self.address}"

    async def make(self, clients: Mapping[str, Client]) -> None:
        await travel(self, clients[self.sender], clients[self.receiver])


async def travel(trip: Trip, origin: Client, goal: Client) -> None:
    """Send a message on the trip's address at ``origin``, receive the message at ``goal``, and accept it.

    Raises CommandFailed if the outcome is not accepted or another message arrived, and MeshError if a link was refused.
    """
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
                "expected the outcome accepted for the probe message, got "
                f"{told.kind.name.lower() if told is not None else 'none'}"
            )
        if decode(received.data).body != token:
            raise CommandFailed("the probe message that arrived differs from the one that was sent")
    finally:
        sender.close()
        receiver.close()

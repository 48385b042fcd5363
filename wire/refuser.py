"""What does a connection over the limit get? An open and a close that say so, in place of a reset. [2.4.3]"""

from __future__ import annotations

from typing import Any

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.errors import AmqpError
from wire.node import Command


class Refuser:
    """A node that closes every connection as it opens."""

    def __init__(self, container_id: str, reason: str) -> None:
        self.dirty = DirtyEndpoints()
        self.commands: list[Command] = []
        self._settings = EndpointSettings(container_id)
        self._error = AmqpError("amqp:resource-limit-exceeded", reason)

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        endpoint = Endpoint(self._settings, peer)
        endpoint.open()
        endpoint.close(self._error)
        return endpoint

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        return self.on_accepted(connector, peer, now)

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        """A refuser dials nobody."""

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        endpoint.drain(_Deaf())

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        """It has nothing more to say."""

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        """It remembers nobody."""

    def on_time(self, now: float) -> None:
        """It never asks for a time."""

    def next_deadline(self) -> float | None:
        return None


class _Deaf:
    def on_delivery(self, link: Any, delivery: Any) -> None:
        """Not listened to."""

    def on_disposition(self, link: Any, delivery: Any) -> None:
        """Not listened to."""

    def on_flow(self, link: Any) -> None:
        """Not listened to."""

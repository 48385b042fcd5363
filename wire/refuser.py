"""Refusal of connections over a listener's limit: an open, and a close with the reason, not a TCP reset. [2.4.3]"""

from __future__ import annotations

from typing import Any

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.errors import AmqpError
from wire.node import Command


class Refuser:
    """A node that answers every connection with an open and a close with an error, and ignores all input."""

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
        """Do nothing: a refuser has no connectors."""

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        endpoint.drain(_Deaf())

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        """Do nothing: a refuser writes nothing after its open and close."""

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        """Do nothing: the refuser keeps no data about a connection that could be dropped now."""

    def on_time(self, now: float) -> None:
        """Do nothing: the refuser sets no deadline, so no call is due."""

    def next_deadline(self) -> float | None:
        return None


class _Deaf:
    def on_delivery(self, link: Any, delivery: Any) -> None:
        """Ignore the delivery."""

    def on_disposition(self, link: Any, delivery: Any) -> None:
        """Ignore the disposition."""

    def on_flow(self, link: Any) -> None:
        """Ignore the flow."""

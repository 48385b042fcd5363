"""Interface of node and driver: inputs for the node, commands for the driver. No I/O here, so nodes can import it.

A node is fed one input at a time, each with the time. After each input the driver flushes ``node.dirty``, carries out
``commands`` and arms its timer for ``next_deadline``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, Peer
from wire.sasl import SaslClientSettings, SaslServerSettings
from wire.transport.specs import DialSpec, PortSpec
from wire.transport.tls import MeshIdentity


@dataclass(frozen=True, slots=True)
class ListenerSpec(PortSpec):
    """A port to listen on, and the demands on peers that connect.

    ``mesh``: name of the mesh, for the port of its nodes and operators; with TLS, peers without its certificate are
    refused. None for a port for clients.
    """

    sasl: SaslServerSettings = field(default_factory=SaslServerSettings)
    mesh: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorSpec(DialSpec):
    """A peer that the driver dials, again after each loss, for as long as the connector exists.

    ``expected``: identity that the peer's certificate must have.
    ``sasl`` None: no SASL layer at all, as between nodes, where the certificate has named the peer already.
    """

    sasl: SaslClientSettings | None = None
    expected: MeshIdentity | None = None
    is_mesh: bool = False


@dataclass(frozen=True, slots=True)
class OpenConnector:
    """Command to the driver: dial a peer at once, and again whenever the connection is lost."""

    spec: ConnectorSpec


@dataclass(frozen=True, slots=True)
class DropConnector:
    """Command to the driver: stop dialing a peer, and close its connection in order if it is up."""

    name: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Command to the driver: reset a connection now; the node hears no more of its endpoint but ``on_disconnected``.

    Bytes that the kernel has not sent are dropped, so that a delivery which the node sends again elsewhere does not
    also arrive, late, over this connection.
    """

    endpoint: Endpoint
    reason: str = "dropped by the node"


Command = OpenConnector | DropConnector | Abort


class Node(Protocol):
    """Interface of a node to its driver, as implemented by routers, brokers and clients."""

    dirty: DirtyEndpoints
    commands: list[Command]
    """Commands for the driver, which removes and carries out each, in order."""

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        """Return a new endpoint for ``peer``, which connected to ``listener``; TLS and SASL are done."""
        ...

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        """Return a new endpoint for ``peer``, which ``connector`` dialed and reached; TLS and SASL are done."""
        ...

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        """Note that an attempt of ``connector`` failed before there was an endpoint; it dials again after a pause."""
        ...

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        """Handle the events of ``endpoint``, got by `Endpoint.drain`: bytes of the peer were fed, or time passed."""
        ...

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        """Let the waiters for room of ``endpoint`` write: its output has room again."""
        ...

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        """Note that the connection of ``endpoint`` is gone, for ``reason``; the driver frees the endpoint next.

        If the node sets ``endpoint.is_kept``, the node itself frees the endpoint later. Called once for every endpoint.
        """
        ...

    def on_time(self, now: float) -> None: ...

    def next_deadline(self) -> float | None: ...

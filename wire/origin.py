"""Origin of a connection, and the objects that hear from a connection: driver, and listener or connector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from wire.authentication import Layers, PeerTerms
from wire.endpoint import Endpoint, Peer
from wire.sasl import PasswordCheck

ConnectionT = TypeVar("ConnectionT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a connection came from, and its terms: exactly one of ``listener`` and ``connector`` is set.

    ``is_mesh``: the peer counts as a node or operator of the mesh once the layers have accepted the connection.
    """

    terms: PeerTerms
    listener: str | None = None
    connector: str | None = None
    is_mesh: bool = False
    handshake_timeout_s: float = 10.0

    @property
    def is_client(self) -> bool:
        return self.listener is not None and not self.is_mesh

    def peer(self, layers: Layers, remote_address: str) -> Peer:
        """Return the identity of the peer, once the layers have accepted the connection."""
        mesh = layers.identity.mesh if layers.identity is not None and self.is_mesh else None
        return Peer(
            user=layers.accepted.user if layers.accepted is not None and self.listener is not None else None,
            is_mesh=self.is_mesh,
            mesh_name=mesh.name if mesh is not None else None,
            mesh_role=mesh.role if mesh is not None else None,
            remote_address=remote_address,
            listener=self.listener,
        )


class ConnectionOwner(Protocol[ConnectionT]):
    """Interface of the driver to its connections. No method may raise."""

    def on_ready(self, connection: ConnectionT, peer: Peer) -> Endpoint | None: ...

    def on_input(self, connection: ConnectionT) -> None: ...

    def on_writable(self, connection: ConnectionT) -> None: ...

    def on_made(self, connection: ConnectionT) -> None: ...

    def on_ended(self, connection: ConnectionT, reason: str) -> None:
        """Note that no more AMQP is sent or read on the connection, though its socket may stay open for a while."""
        ...

    def on_gone(self, connection: ConnectionT, reason: str) -> None: ...

    def on_connect_failed(self, connector: str, reason: str) -> None: ...

    def check_password(self, check: PasswordCheck, done: Callable[[bool], None]) -> None: ...

    input_buffer: memoryview

    def guard(self, connection: ConnectionT, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call``; an exception in the call ends this connection and no other."""
        ...

    def on_fault(self, connection: ConnectionT, fault: Exception) -> None:
        """End the connection for an exception that the caller caught, as ``guard`` does."""
        ...

    def now(self) -> float: ...


class ConnectionMaker(Protocol[ConnectionT]):
    """Interface of the listener or connector that made a connection, and that logs its opening and end."""

    def on_opened(self, connection: ConnectionT, container_id: str) -> None: ...

    def on_gone(self, connection: ConnectionT, reason: str) -> None: ...

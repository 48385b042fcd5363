"""Origin of a connection, and the objects that hear from a connection: driver, and listener or connector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from wire.endpoint import Endpoint, Peer
from wire.layers import Layers, PeerTerms
from wire.sasl import PasswordCheck

ConnectionT = TypeVar("ConnectionT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a connection: exactly one of ``listener`` and ``connector`` is set.

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
    """The driver, as its connections see it. No call may raise."""

    def on_ready(self, connection: ConnectionT, peer: Peer) -> Endpoint | None: ...

    def on_input(self, connection: ConnectionT) -> None: ...

    def on_writable(self, connection: ConnectionT) -> None: ...

    def on_made(self, connection: ConnectionT) -> None: ...

    def on_ended(self, connection: ConnectionT, reason: str) -> None:
        """Note that nothing more is said or understood, though the socket may stay for a while."""
        ...

    def on_gone(self, connection: ConnectionT, reason: str) -> None: ...

    def on_connect_failed(self, connector: str, reason: str) -> None: ...

    def check_password(self, check: PasswordCheck, done: Callable[[bool], None]) -> None: ...

    input_buffer: memoryview

    def guard(self, connection: ConnectionT, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call``; a fault in the call ends this connection and no other."""
        ...

    def on_fault(self, connection: ConnectionT, fault: Exception) -> None:
        """Do as ``guard`` for a caller that caught the fault."""
        ...

    def now(self) -> float: ...


class ConnectionMaker(Protocol[ConnectionT]):
    """The listener or connector that made the connection, and that logs about the connection."""

    def on_opened(self, connection: ConnectionT, container_id: str) -> None: ...

    def on_gone(self, connection: ConnectionT, reason: str) -> None: ...

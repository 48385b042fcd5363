"""Whom does a connection tell what happens to it, and where does it come from?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from wire.endpoint import Endpoint, Peer
from wire.layers import Layers, Terms
from wire.sasl import PasswordCheck

if TYPE_CHECKING:
    from wire.connection import Connection


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the connection comes from: exactly one of ``listener`` and ``connector``.

    ``mesh``: the peer counts as a node or operator of the mesh once the layers accepted it.
    """

    terms: Terms
    listener: str | None = None
    connector: str | None = None
    is_mesh: bool = False
    handshake_timeout_s: float = 10.0

    @property
    def is_client(self) -> bool:
        return self.listener is not None and not self.is_mesh

    def peer(self, layers: Layers, remote_address: str) -> Peer:
        """Who is there, once the layers accepted it."""
        mesh = layers.identity.mesh if layers.identity is not None and self.is_mesh else None
        return Peer(
            user=layers.accepted.user if layers.accepted is not None and self.listener is not None else None,
            is_mesh=self.is_mesh,
            mesh_name=mesh.name if mesh is not None else None,
            mesh_role=mesh.role if mesh is not None else None,
            remote_address=remote_address,
            listener=self.listener,
        )


class Owner(Protocol):
    """The driver, as its connections see it. Each call may raise nothing."""

    def on_ready(self, connection: Connection, peer: Peer) -> Endpoint | None: ...

    def on_input(self, connection: Connection) -> None: ...

    def on_writable(self, connection: Connection) -> None: ...

    def on_made(self, connection: Connection) -> None: ...

    def on_ended(self, connection: Connection, reason: str) -> None:
        """Nothing more is said or understood, though the socket may stay for a while."""
        ...

    def on_gone(self, connection: Connection, reason: str) -> None: ...

    def on_connect_failed(self, connector: str, reason: str) -> None: ...

    def check_password(self, check: PasswordCheck, done: Callable[[bool], None]) -> None: ...

    input_buffer: memoryview

    def guard(self, connection: Connection, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call``; a fault in it ends this connection and no other."""
        ...

    def on_fault(self, connection: Connection, fault: Exception) -> None:
        """``guard`` for who caught it himself."""
        ...

    def now(self) -> float: ...


class Keeper(Protocol):
    """The listener or connector that made the connection; it has the say in the log."""

    def on_opened(self, connection: Connection, container_id: str) -> None: ...

    def on_gone(self, connection: Connection, reason: str) -> None: ...

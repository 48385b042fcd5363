"""Keep the connections that are the only one of their container, and resolve the arrival of another connection.

A client that desires ``sole-connection-for-container`` is promised that its container has no other open connection at
this router with the same desire. JMS asks for the promise with its client id. Equal container-ids of different users
are different containers: nobody can shut out another user, or close another user's connection, by a name.

Spec: AMQP Enforcing Connection Uniqueness 1.0.
"""

from __future__ import annotations

from wire.data import as_symbol
from wire.endpoint import Endpoint
from wire.errors import AmqpError

CAPABILITY = "sole-connection-for-container"
DETECTION_POLICY = "sole-connection-detection-policy"
ENFORCEMENT_POLICY = "sole-connection-enforcement-policy"
ESTABLISHMENT_FAILED = "amqp:connection-establishment-failed"
STRONG, WEAK = 0, 1
"""Detection: strong covers every connection of the mesh, weak only the connections to this router."""
REFUSE_CONNECTION, CLOSE_EXISTING = 0, 1
"""Enforcement, as the new connection asks for it."""


class SoleConnections:
    """Always: ``_held`` has the last connection of each container that was promised to be the only one."""

    def __init__(self) -> None:
        self._held: dict[tuple[str | None, str], Endpoint] = {}

    def enter(self, endpoint: Endpoint) -> None:
        """The peer's OPEN arrived. Raises AmqpError if the peer must leave; closes an earlier one on request."""
        remote = endpoint.remote
        if remote is None or CAPABILITY not in remote.desired_capabilities:
            return
        before = self._held.get(_key(endpoint))
        if before is not None and before is not endpoint and before.is_open:
            if remote.properties.get(ENFORCEMENT_POLICY) != CLOSE_EXISTING:
                raise _refusal(remote.container_id, before)
            before.close(_replacement(remote.container_id, endpoint))
        self._held[_key(endpoint)] = endpoint

    def leave(self, endpoint: Endpoint) -> None:
        """The connection is gone."""
        if endpoint.remote is not None and self._held.get(_key(endpoint)) is endpoint:
            del self._held[_key(endpoint)]


def _key(endpoint: Endpoint) -> tuple[str | None, str]:
    remote = endpoint.remote
    assert remote is not None
    return endpoint.peer.user, remote.container_id


def _refusal(container_id: str, before: Endpoint) -> AmqpError:
    return AmqpError(
        "amqp:invalid-field",
        f"container-id {container_id!r} has a connection from {before.peer.remote_address} here, and "
        "desires to be the sole connection",
        {"invalid-field": as_symbol("container-id")},
    )


def _replacement(container_id: str, after: Endpoint) -> AmqpError:
    return AmqpError(
        "amqp:resource-locked",
        f"container-id {container_id!r} opened another connection, from {after.peer.remote_address}, in place of it",
        {"sole-connection-enforcement": True},
    )

"""Which connection is the only one of its container, and what happens when another one comes?

A client that desires ``sole-connection-for-container`` is promised that no other connection of its container that
desires it, too, is open at this router. JMS asks for this with its client id. Containers of different users are
different ones: nobody can shut another user out, or throw another user's connection out, by a name.

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
"""Detection: of every other connection, or not of those that come to another router of the mesh."""
REFUSE_CONNECTION, CLOSE_EXISTING = 0, 1
"""Enforcement, as the one that comes asks for it."""


class SoleConnections:
    """Always: ``_held`` has the last connection of each container that was promised to be the only one."""

    def __init__(self) -> None:
        self._held: dict[tuple[str | None, str], Endpoint] = {}

    def enter(self, endpoint: Endpoint) -> None:
        """The peer opened. Raises AmqpError when it has to go; closes the one before where the peer asks for that."""
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
        f"container-id {container_id!r} has a connection from {before.peer.remote_address} here, and asked to have one",
        {"invalid-field": as_symbol("container-id")},
    )


def _replacement(container_id: str, after: Endpoint) -> AmqpError:
    return AmqpError(
        "amqp:resource-locked",
        f"container-id {container_id!r} opened another connection, from {after.peer.remote_address}, in place of it",
        {"sole-connection-enforcement": True},
    )

"""Let a client's container have a single connection, if the client asks: refuse a second connection or close the first.

A client that desires ``sole-connection-for-container`` is promised that its container has no other open connection at
this router with the same desire. JMS asks for the promise with its client id. Equal container-ids of different users
are different containers: no user can shut out another user, or close another user's connection, by a name. So are equal
container-ids of two spaces.

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
"""Detection policies: strong finds a second connection anywhere in the mesh, weak only one to the same router."""
REFUSE_CONNECTION, CLOSE_EXISTING = 0, 1
"""Enforcement policies, as the second connection asks for: refuse the second, or close the first."""


_Container = tuple[str, str | None, str]
"""Space, user and container-id."""


class SoleConnections:
    """The connections to this router that are promised to be the only one of their container.

    Always: ``_held`` has, for each container with such a promise, the last connection that got the promise.
    """

    def __init__(self) -> None:
        self._held: dict[_Container, Endpoint] = {}

    def enter(self, endpoint: Endpoint, space: str) -> None:
        """Promise the connection of ``endpoint`` to be its container's sole one, if the client's OPEN desires that.

        The container of a client is known by the client's space, user and container-id. If the container already has an
        open connection with this promise, close that connection if the new OPEN asks for a close, else raise AmqpError:
        the new connection is refused.
        """
        remote = endpoint.remote
        if remote is None or CAPABILITY not in remote.desired_capabilities:
            return
        key = _key(endpoint, space)
        before = self._held.get(key)
        if before is not None and before is not endpoint and before.is_open:
            if remote.properties.get(ENFORCEMENT_POLICY) != CLOSE_EXISTING:
                raise _refusal(remote.container_id, before)
            before.close(_replacement(remote.container_id, endpoint))
        self._held[key] = endpoint

    def leave(self, endpoint: Endpoint, space: str) -> None:
        """Forget the promise to the connection of ``endpoint``, which is gone: its container may open another
        connection.
        """
        if endpoint.remote is not None and self._held.get(key := _key(endpoint, space)) is endpoint:
            del self._held[key]


def _key(endpoint: Endpoint, space: str) -> _Container:
    remote = endpoint.remote
    assert remote is not None
    return space, endpoint.peer.user, remote.container_id


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

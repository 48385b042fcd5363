"""The errors of the load generator when the server under load misbehaves or is gone."""

from __future__ import annotations

from mesh.client.errors import MeshError, Unreachable


class Malformed(Unreachable):
    """The peer's bytes are not AMQP 1.0, as far as this load generator knows AMQP."""


class PeerGone(Unreachable):
    """The connection broke, the peer closed the connection, or the peer sent a frame that was not expected then."""


class BenchRefused(MeshError):
    """The peer detached a link or ended a session; ``condition`` is the condition of the AMQP error."""

    def __init__(self, what: str, condition: str, description: str | None) -> None:
        super().__init__(f"{what}: {description or condition}", code=condition)
        self.condition = condition

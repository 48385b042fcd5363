"""The two results of a SASL handshake, as seen from either side: the peer is accepted, or the peer is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SaslAccepted:
    """The peer is accepted. ``mechanism`` is None without a SASL layer; ``user`` is None for an anonymous peer."""

    user: str | None
    mechanism: str | None


@dataclass(frozen=True, slots=True)
class SaslRefused:
    """The peer is refused: callers send the rest of ``output``, then close. ``reason`` is for our log only.

    ``is_credentials``: the peer's password or certificate was wrong; False if the peer broke the protocol.
    """

    reason: str
    is_credentials: bool = False


Verdict = SaslAccepted | SaslRefused

"""Verdicts of the SASL handshake."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SaslAccepted:
    """The peer is accepted. ``mechanism`` is None without a SASL layer; ``user`` is None for an anonymous peer."""

    user: str | None
    mechanism: str | None


@dataclass(frozen=True, slots=True)
class SaslRefused:
    """The peer is refused. Send the rest of ``output``, then close. ``reason`` is for our log, never for the peer.

    ``is_credentials``: an identity was tried and not believed (as opposed to: the peer does not speak our protocol).
    """

    reason: str
    is_credentials: bool = False


Verdict = SaslAccepted | SaslRefused

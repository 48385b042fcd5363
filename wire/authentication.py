"""Acceptance of a peer before its first AMQP byte: by the identity in its certificate, then by SASL. Sans-IO.

    bytes above TLS --receive--> [SASL until its verdict] --> AMQP bytes
    bytes above TLS <--output--- [SASL until its verdict]

Authentication ends in ``accepted`` or in ``failure``. A failure still has ``output``: a header or outcome for the peer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wire.sasl import PasswordCheck, SaslAccepted, SaslClient, SaslRefused, SaslServer
from wire.transport.tls import PeerIdentity

Sasl = SaslServer | SaslClient


@dataclass(frozen=True, slots=True)
class PeerTerms:
    """Demands on the peer of a connection, as two functions of the identity in the peer's certificate.

    ``make_sasl`` makes the SASL layer, or returns None for a connection without this layer. ``refuse`` returns why the
    identity is not accepted, None if it is accepted.
    """

    make_sasl: Callable[[PeerIdentity | None], Sasl | None]
    refuse: Callable[[PeerIdentity | None], str | None]


class PeerAuthentication:
    """The authentication of one peer: begins with the identity that TLS has verified, and goes on with SASL, if any.

    Always: one of ``accepted`` and ``failure`` is set at most, and stays as set.
    """

    __slots__ = ("_sasl", "accepted", "failure")

    def __init__(self, terms: PeerTerms, identity: PeerIdentity | None) -> None:
        self._sasl: Sasl | None = None
        self.accepted: SaslAccepted | None = None
        self.failure: SaslRefused | None = None
        reason = terms.refuse(identity)
        if reason is not None:
            self.failure = SaslRefused(reason, is_credentials=True)
            return
        self._sasl = terms.make_sasl(identity)
        if self._sasl is None:
            self.accepted = SaslAccepted(identity.user if identity is not None else None, None)
        else:
            self._judge()

    @property
    def password_check(self) -> PasswordCheck | None:
        return self._sasl.password_check if isinstance(self._sasl, SaslServer) else None

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the peer; return the bytes for the AMQP endpoint, b"" until the peer is accepted."""
        if self._sasl is None or self.failure is not None:
            return b""
        self._sasl.receive(data)
        return self._judge()

    def on_password_checked(self, is_right: bool) -> bytes:
        """Take the result of ``password_check``; return the bytes for the AMQP endpoint that came during the check."""
        if isinstance(self._sasl, SaslServer):
            self._sasl.on_password_checked(is_right)
        return self._judge()

    def output(self) -> bytes:
        """Remove and return the bytes of the SASL handshake to send to the peer; b"" if there are none."""
        return self._sasl.output() if self._sasl is not None else b""

    def describe_state(self) -> str:
        """Return the name of the peer's input that authentication waits for, for the log: "sasl-init", "open frame"."""
        return self._sasl.describe_state() if self._sasl is not None else "open frame"

    def _judge(self) -> bytes:
        sasl = self._sasl
        if sasl is None:
            return b""
        match sasl.verdict:
            case SaslAccepted() as accepted:
                self.accepted = accepted
                return sasl.leftover
            case SaslRefused() as refused:
                self.failure = refused
        return b""

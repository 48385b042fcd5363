"""The layers between the socket and AMQP: TLS, then SASL, either of which may be absent. Sans-IO.

    socket bytes --receive--> [TLS] --> [SASL until its verdict] --> AMQP bytes
    socket bytes <--output--- [TLS] <-- [SASL until its verdict] <--send-- AMQP bytes

The layers end in ``accepted`` or in ``failure``. A failure still has ``output``: header, outcome or alert for the peer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wire.sasl import PasswordCheck, SaslAccepted, SaslClient, SaslRefused, SaslServer
from wire.transport.tls import PeerIdentity
from wire.transport.tls_session import TlsFault, TlsSession

Sasl = SaslServer | SaslClient


@dataclass(frozen=True, slots=True)
class PeerTerms:
    """Demands on the peer of a connection: makers of its TLS and SASL layers, None or returning None for no such layer.

    ``refuse`` returns why the identity in the peer's certificate is not accepted; None if it is.
    """

    make_tls: Callable[[], TlsSession] | None
    make_sasl: Callable[[PeerIdentity | None], Sasl | None]
    refuse: Callable[[PeerIdentity | None], str | None]


class Layers:
    """The TLS and SASL layers of one connection, stacked; either may be absent.

    Always: ``accepted`` and ``failure``, once set, stay as set; both are set only if TLS fails after acceptance.
    """

    def __init__(self, terms: PeerTerms) -> None:
        self._terms = terms
        self._tls = terms.make_tls() if terms.make_tls is not None else None
        self._sasl: Sasl | None = None
        self._has_begun = False
        self._raw_output = bytearray()
        self.identity: PeerIdentity | None = None
        self.accepted: SaslAccepted | None = None
        self.failure: SaslRefused | None = None
        self._begin_above_tls()

    @property
    def password_check(self) -> PasswordCheck | None:
        return self._sasl.password_check if isinstance(self._sasl, SaslServer) else None

    @property
    def has_ended(self) -> bool:
        """Whether the peer has said, in TLS, that it sends no more."""
        return self._tls is not None and self._tls.has_ended

    @property
    def is_encrypted(self) -> bool:
        return self._tls is not None

    def receive(self, data: bytes) -> bytes:
        """Take bytes from the socket; return the bytes for the AMQP endpoint, b"" until the layers have accepted."""
        if self.failure is not None:
            return b""
        try:
            plain = self._tls.receive(data) if self._tls is not None else data
        except TlsFault as fault:
            self.failure = SaslRefused(str(fault))
            return b""
        self._begin_above_tls()
        if self.accepted is not None:
            return plain
        if self._sasl is None:
            return b""
        self._sasl.receive(plain)
        return self._after_sasl()

    def on_password_checked(self, is_right: bool) -> bytes:
        """Take the result of ``password_check``; return the bytes for the AMQP endpoint that came meanwhile."""
        if isinstance(self._sasl, SaslServer):
            self._sasl.on_password_checked(is_right)
        return self._after_sasl()

    def send(self, data: bytes) -> None:
        """Take bytes from the AMQP endpoint, to be encrypted if there is TLS, for ``output``."""
        if self._tls is None:
            self._raw_output += data
            return
        try:
            self._tls.send(data)
        except TlsFault as fault:
            # Broken TLS sends nothing more: note the failure, and leave the end to the peer, or to the idle timeout.
            self.failure = self.failure or SaslRefused(str(fault))

    def output(self) -> bytes:
        """Remove and return the bytes that wait for the socket."""
        if self._tls is not None:
            return self._tls.output()
        data = bytes(self._raw_output)
        self._raw_output.clear()
        return data

    def close(self) -> None:
        if self._tls is not None:
            self._tls.close()

    def describe_state(self) -> str:
        """Return the name of the input that the layers wait for, for a log line: "TLS handshake", "open frame"."""
        if not self._has_begun:
            return "TLS handshake"
        return self._sasl.describe_state() if self._sasl is not None else "open frame"

    def _begin_above_tls(self) -> None:
        """Once the TLS handshake is done, or without TLS, check the peer's certificate and start SASL."""
        if self._has_begun or (self._tls is not None and not self._tls.is_ready):
            return
        self._has_begun = True
        self.identity = self._tls.peer if self._tls is not None else None
        reason = self._terms.refuse(self.identity)
        if reason is not None:
            self.failure = SaslRefused(reason, is_credentials=True)
            return
        self._sasl = self._terms.make_sasl(self.identity)
        if self._sasl is None:
            self.accepted = SaslAccepted(self.identity.user if self.identity is not None else None, None)
        else:
            self._after_sasl()

    def _after_sasl(self) -> bytes:
        sasl = self._sasl
        if sasl is None:
            return b""
        if data := sasl.output():
            self.send(data)
        match sasl.verdict:
            case SaslAccepted() as accepted:
                self.accepted = accepted
                return sasl.leftover
            case SaslRefused() as refused:
                self.failure = refused
        return b""

"""TLS of one connection, sans-IO: cipher text from and to the socket, plain text from and to the layer above.

asyncio's own TLS is not used: it closes a connection whose handshake fails without a reason for the log, and buffers
without bound. Here the handshake is a phase of the connection, under its timeout and with its log line.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import sys

from wire.transport.first_bytes import name_of
from wire.transport.tls import PeerIdentity, TlsAgreement, peer_identity, stale_certificate

_CHUNK_BYTES = 65536
_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class TlsFault(Exception):
    """TLS failed: the peer does not speak TLS, one side does not trust the other, or the session is broken.

    The caller still sends the session's ``output``, which may hold an alert for the peer.
    """


class TlsSession:
    """The TLS layer of one connection, as client or server.

    ``is_ready`` is set when the handshake is done, ``has_ended`` when the peer has closed its side of the TLS session.
    """

    def __init__(self, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._first_bytes = b""
        self.is_ready = False
        self.has_ended = False
        if not server_side:
            self._handshake()

    @property
    def peer(self) -> PeerIdentity | None:
        return peer_identity(self._tls)

    @property
    def agreement(self) -> TlsAgreement | None:
        """Version and cipher of the session; None before the handshake is done."""
        version, cipher = self._tls.version(), self._tls.cipher()
        if version is None or cipher is None:
            return None
        # All connections have the same few words: interned, they take no memory for each connection.
        return TlsAgreement(sys.intern(version), sys.intern(cipher[0]))

    def receive(self, data: bytes) -> bytes:
        """Take cipher text of the peer; return the plain text that is complete, b"" before the handshake is done.

        Raises TlsFault if the handshake fails, or the session is broken.
        """
        if not self.is_ready:
            self._first_bytes = (self._first_bytes + data)[:64]
        self._incoming.write(data)
        if not self.is_ready:
            self._handshake()
        return self._read() if self.is_ready else b""

    def send(self, data: bytes) -> None:
        """Encrypt ``data`` into the output. Raises TlsFault when the session is broken."""
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            raise TlsFault(_sentence(error)) from None

    def output(self) -> bytes:
        return self._outgoing.read()

    def close(self) -> None:
        """Put TLS's close message for the peer into the output, without waiting for the peer's answer."""
        # SSLObject.unwrap writes TLS's close message, and then raises, as the peer's answer is not here yet; this error
        # means nothing.
        with contextlib.suppress(ssl.SSLError):
            if self.is_ready:
                self._tls.unwrap()

    def _handshake(self) -> None:
        try:
            self._tls.do_handshake()
            self._judge_resumed()
            self.is_ready = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise TlsFault(self._why(error)) from None

    def _judge_resumed(self) -> None:
        """Raise TlsFault if a resumed session's certificate, verified when that session began, is not valid now."""
        fault = stale_certificate(self._tls) if self._tls.session_reused else None
        if fault is not None:
            raise TlsFault(f"certificate not trusted: {fault}")

    def _read(self) -> bytes:
        pieces = []
        try:
            while piece := self._tls.read(_CHUNK_BYTES):
                pieces.append(piece)
            self.has_ended = True
        except ssl.SSLWantReadError:
            pass
        except _ENDED:
            self.has_ended = True
        except ssl.SSLError as error:
            raise TlsFault(_sentence(error)) from None
        return b"".join(pieces)

    def _why(self, error: ssl.SSLError) -> str:
        is_tls = self._first_bytes[:1] in (b"\x14", b"\x15", b"\x16", b"\x17")
        return _sentence(error) if is_tls or not self._first_bytes else f"not TLS: {name_of(self._first_bytes)}"


def _sentence(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not trusted: {error.verify_message}"
    reason = error.reason or str(error)
    return f"TLS: {re.sub(r'[_ ]+', ' ', reason).lower()}"

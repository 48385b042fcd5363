"""The server's side of each SASL mechanism, one step at a time.

A mechanism is fed the client's responses and answers each with the next step: a question, a password check, a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from wire.sasl import scram
from wire.sasl.authenticator import Authenticator, PasswordCheck
from wire.sasl.prepare import prepare
from wire.sasl.verdict import SaslAccepted, SaslRefused


@dataclass(frozen=True, slots=True)
class NextChallenge:
    challenge: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AcceptedWithProof:
    """Accepted, with the server's own proof as ``additional_data`` of the outcome."""

    accepted: SaslAccepted
    additional_data: bytes = field(repr=False)


Step = NextChallenge | PasswordCheck | AcceptedWithProof | SaslAccepted | SaslRefused


class ServerMechanism(Protocol):
    def on_response(self, response: bytes | None) -> Step:
        """``response`` is None when the client's init carried none."""
        ...


class AnonymousServer:
    """Accepts every client: a trace left by the client is not an identity. [RFC 4505]"""

    def on_response(self, response: bytes | None) -> Step:
        return SaslAccepted(None, "ANONYMOUS")


class ExternalServer:
    """Accepts no identity but the user of the client's certificate. [RFC 4422 appendix A]"""

    def __init__(self, user: str) -> None:
        self._user = user

    def on_response(self, response: bytes | None) -> Step:
        wanted = (response or b"").decode(errors="replace")
        if wanted in ("", self._user):
            return SaslAccepted(self._user, "EXTERNAL")
        return SaslRefused(f"certificate of {self._user!r} cannot act as {wanted!r}", is_credentials=True)


class PlainServer:
    """[RFC 4616]"""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def on_response(self, response: bytes | None) -> Step:
        if response is None:
            return NextChallenge(b"")
        try:
            acting_as, user, password = (part.decode() for part in response.split(b"\0"))
        except ValueError:
            return SaslRefused("PLAIN response is not three UTF-8 strings separated by NUL")
        user = prepare(user)
        if acting_as not in ("", user):
            return SaslRefused(f"user {user!r} cannot act as {acting_as!r}", is_credentials=True)
        return PasswordCheck(user, self._authenticator.knows(user), self._authenticator.secret_of(user), password)


class ScramServer:
    def __init__(self, authenticator: Authenticator) -> None:
        self._exchange = scram.ServerExchange(authenticator)
        self._is_first = True

    def on_response(self, response: bytes | None) -> Step:
        if response is None:
            return NextChallenge(b"")
        try:
            if self._is_first:
                self._is_first = False
                return NextChallenge(self._exchange.on_client_first(response))
            proof = self._exchange.on_client_final(response)
        except scram.ScramFault as fault:
            return SaslRefused(f"user {self._exchange.user!r}: {fault}", is_credentials=True)
        return AcceptedWithProof(SaslAccepted(self._exchange.user, scram.NAME), proof)

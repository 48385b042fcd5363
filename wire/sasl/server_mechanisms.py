"""The server's side of each SASL mechanism, one step at a time.

A mechanism is fed the client's responses and returns for each the next step: a challenge to send, a password check to
run, or a verdict.
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
    """The step that accepts the client: the outcome carries SCRAM's proof of the server as ``additional_data``."""

    accepted: SaslAccepted
    additional_data: bytes = field(repr=False)


Step = NextChallenge | PasswordCheck | AcceptedWithProof | SaslAccepted | SaslRefused


class ServerMechanism(Protocol):
    def on_response(self, response: bytes | None) -> Step:
        """Return the next step after the client's ``response``; None is a sasl-init without an initial response."""
        ...


class AnonymousServer:
    """The mechanism ANONYMOUS: accepts every client, without a user; its trace information is ignored. [RFC 4505]"""

    def on_response(self, response: bytes | None) -> Step:
        return SaslAccepted(None, "ANONYMOUS")


class ExternalServer:
    """The mechanism EXTERNAL: accepts the client as the user of its certificate only. [RFC 4422 appendix A]"""

    def __init__(self, user: str) -> None:
        self._user = user

    def on_response(self, response: bytes | None) -> Step:
        wanted = (response or b"").decode(errors="replace")
        if wanted in ("", self._user):
            return SaslAccepted(self._user, "EXTERNAL")
        return SaslRefused(f"certificate of {self._user!r} cannot act as {wanted!r}", is_credentials=True)


class PlainServer:
    """The mechanism PLAIN: asks for a check of the user's password. [RFC 4616]"""

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

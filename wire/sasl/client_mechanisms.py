"""The client's side of each SASL mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod

from wire.errors import LocalStateError
from wire.sasl import scram


class ClientMechanism(ABC):
    name: str

    @abstractmethod
    def initial_response(self) -> bytes: ...

    def on_challenge(self, challenge: bytes) -> bytes:
        """Return the response to a server's challenge: by default the initial response, as for an empty challenge."""
        return self.initial_response()

    def on_success(self, additional_data: bytes | None) -> None:  # noqa: B027 (most mechanisms need no proof)
        """Check the server's proof in an outcome that accepts the client; raise ScramFault if it is missing or wrong.

        By default, do nothing: of these mechanisms, only SCRAM has a proof.
        """


class AnonymousClient(ClientMechanism):
    name = "ANONYMOUS"

    def initial_response(self) -> bytes:
        return b"anonymous"


class ExternalClient(ClientMechanism):
    """The mechanism EXTERNAL: the client's certificate names the user, so the response is empty."""

    name = "EXTERNAL"

    def initial_response(self) -> bytes:
        return b""


class PlainClient(ClientMechanism):
    name = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._message = b"\0".join((b"", user.encode(), password.encode()))

    def initial_response(self) -> bytes:
        return self._message


class ScramClient(ClientMechanism):
    """The mechanism SCRAM-SHA-256. The server's proof may come in the outcome's additional data, or in a challenge."""

    name = scram.NAME

    def __init__(self, user: str, password: str) -> None:
        self._exchange = scram.ClientExchange(user, password)
        self._first = self._exchange.client_first()
        self._is_proof_sent = False
        self._is_server_proven = False

    def initial_response(self) -> bytes:
        return self._first

    def on_challenge(self, challenge: bytes) -> bytes:
        if not challenge and not self._is_proof_sent:
            return self._first
        if not self._is_proof_sent:
            self._is_proof_sent = True
            return self._exchange.on_server_first(challenge)
        self._prove(challenge)
        return b""

    def on_success(self, additional_data: bytes | None) -> None:
        if not self._is_server_proven:
            self._prove(additional_data or b"")

    def _prove(self, message: bytes) -> None:
        if not self._is_proof_sent or self._is_server_proven:
            raise scram.ScramFault("the server ended the SCRAM exchange before the proof of the client, or twice")
        self._exchange.on_server_final(message)
        self._is_server_proven = True


def make_mechanism(name: str, user: str, password: str) -> ClientMechanism:
    match name:
        case "ANONYMOUS":
            return AnonymousClient()
        case "EXTERNAL":
            return ExternalClient()
        case "PLAIN":
            return PlainClient(user, password)
        case scram.NAME:
            return ScramClient(user, password)
    raise LocalStateError(f"a bug: the client chose the SASL mechanism {name}, but has no code for it")

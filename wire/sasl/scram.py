"""SCRAM-SHA-256, both sides, by the scramp library, whose errors become ScramFault. [RFC 5802, RFC 7677]"""

from __future__ import annotations

from scramp import ScramClient, ScramException, ScramMechanism  # type: ignore[import-untyped]

from wire.sasl.authenticator import Authenticator

NAME = "SCRAM-SHA-256"
# Most iterations that a server may ask of a client: more would let a hostile server keep our event loop busy.
_MAX_CLIENT_ITERATIONS = 1_000_000


class ScramFault(Exception):
    """A SCRAM exchange failed, and so does the login: the other side sent a wrong message, or lacks the password.

    Also raised on the client's side for a user or password that SCRAM cannot use.
    """


class ServerExchange:
    """The server's side of SCRAM's messages: client-first -> server-first -> client-final -> server-final."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._server = ScramMechanism(NAME).make_server(self._secret_of)
        self.user = ""

    def on_client_first(self, message: bytes) -> bytes:
        try:
            self._server.set_client_first(_text(message))
            return str(self._server.get_server_first()).encode()
        except ScramException as error:
            raise ScramFault(f"malformed first SCRAM message of the client: {error}") from None

    def on_client_final(self, message: bytes) -> bytes:
        text = _text(message)
        try:
            self._server.set_client_final(text)
            answer = str(self._server.get_server_final()).encode()
        except ScramException as error:
            raise ScramFault(f"wrong user or password ({error})") from None
        if not self._authenticator.knows(self.user):
            raise ScramFault("wrong user or password")
        return answer

    def _secret_of(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = user
        secret = self._authenticator.secret_of(user)
        return secret.salt, secret.stored_key, secret.server_key, secret.iterations


class ClientExchange:
    """The client's side of SCRAM's messages, with the password; checks the server's proof that it has the secret."""

    def __init__(self, user: str, password: str) -> None:
        try:
            self._client = ScramClient([NAME], user, password)
        except ScramException as error:
            raise ScramFault(f"the user or password of this client cannot be used with SCRAM: {error}") from None

    def client_first(self) -> bytes:
        return str(self._client.get_client_first()).encode()

    def on_server_first(self, message: bytes) -> bytes:
        try:
            self._client.set_server_first(_text(message))
            iterations = int(self._client.iterations)
            if iterations > _MAX_CLIENT_ITERATIONS:
                raise ScramFault(
                    f"expected at most {_MAX_CLIENT_ITERATIONS} SCRAM iterations, the server asks for {iterations}"
                )
            return str(self._client.get_client_final()).encode()
        except ScramException as error:
            raise ScramFault(f"malformed first SCRAM message of the server: {error}") from None

    def on_server_final(self, message: bytes) -> None:
        try:
            self._client.set_server_final(_text(message))
        except ScramException as error:
            raise ScramFault(f"the server could not prove that it knows the password: {error}") from None


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramFault("a SCRAM message of the peer is not UTF-8") from None

"""The server's side of a connection's first bytes: protocol header, then the SASL handshake.

Sans-IO. Callers feed bytes to ``receive``, send the bytes of ``output``, run ``password_check`` when there is one, and
pass the result to ``on_password_checked``. When ``verdict`` is set the handshake is over, and ``leftover`` is the first
input of the AMQP layer.

    HEADER --SASL--> INIT --sasl-init--> EXCHANGE <--> CHECK ---> DONE
       \\--AMQP without SASL, where that is allowed---------------> DONE

Spec: AMQP 1.0 [2.2] version negotiation, [5.3] SASL.
Stricter than the spec: one login attempt for each connection; a second sasl-init ends the connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache

from wire.errors import LocalStateError
from wire.sasl import headers, scram
from wire.sasl.authenticator import Authenticator, PasswordCheck
from wire.sasl.frames import (
    Frame,
    FrameFault,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    encode_frame,
    frame_name,
    take_frame,
)
from wire.sasl.server_mechanisms import (
    AcceptedWithProof,
    AnonymousServer,
    ExternalServer,
    NextChallenge,
    PlainServer,
    ScramServer,
    ServerMechanism,
    Step,
)
from wire.sasl.verdict import SaslAccepted, SaslRefused, Verdict
from wire.transport.first_bytes import name_of

_MAX_ROUNDS = 8
_OK, _AUTH = 0, 1
_ACCEPTED = encode_frame(SaslOutcome(_OK))


@lru_cache(16)
def _offer(mechanisms: tuple[str, ...]) -> bytes:
    """Return the server's first bytes, equal for all clients to whom it offers the same mechanisms."""
    return headers.SASL + encode_frame(SaslMechanisms(mechanisms))


@dataclass(frozen=True, slots=True)
class SaslServerSettings:
    """Demands of a listener on its clients.

    ``is_required`` false: clients may be anonymous, with or without a SASL layer; a password is still checked.
    ``is_tls_enough``: a client whose certificate names a user may leave the SASL layer out.
    """

    authenticator: Authenticator = field(default_factory=lambda: Authenticator({}))
    is_required: bool = False
    is_tls_enough: bool = False


class _State(Enum):
    HEADER = auto()
    INIT = auto()
    EXCHANGE = auto()
    CHECK = auto()
    DONE = auto()


class SaslServer:
    """Runs the server's side of one SASL handshake, from the protocol header to the verdict.

    Always: ``verdict`` is set exactly in state DONE, ``password_check`` exactly in state CHECK.
    """

    def __init__(self, settings: SaslServerSettings, certificate_user: str | None = None) -> None:
        self._settings = settings
        self._certificate_user = certificate_user
        self._state = _State.HEADER
        self._input = bytearray()
        self._output = bytearray()
        self._mechanism: ServerMechanism | None = None
        self._rounds = 0
        self.password_check: PasswordCheck | None = None
        self.verdict: Verdict | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the SASL mechanisms that the server offers to this client, strongest first."""
        offered = []
        if self._certificate_user is not None:
            offered.append("EXTERNAL")
        if self._settings.authenticator.has_users:
            offered += [scram.NAME, "PLAIN"]
        if not self._settings.is_required:
            offered.append("ANONYMOUS")
        return tuple(offered)

    @property
    def can_skip_sasl(self) -> bool:
        if not self._settings.is_required:
            return True
        return self._settings.is_tls_enough and self._certificate_user is not None

    @property
    def leftover(self) -> bytes:
        """Bytes of the client that belong to the AMQP layer, behind its last SASL frame; b"" before the verdict."""
        return bytes(self._input) if self.verdict is not None else b""

    def output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        return data

    def receive(self, data: bytes) -> None:
        self._input += data
        self._proceed()

    def on_password_checked(self, is_right: bool) -> None:
        check = self.password_check
        if check is None:
            raise LocalStateError("a bug: the result of a password check came, but no check was begun")
        self.password_check = None
        self._state = _State.EXCHANGE
        if is_right:
            self._take(SaslAccepted(check.user, "PLAIN"))
        else:
            self._take(SaslRefused(f"user {check.user!r}: wrong user or password", is_credentials=True))
        self._proceed()

    def describe_state(self) -> str:
        """Return the name of the client's input that the server waits for; logged if the client is silent or leaves."""
        match self._state:
            case _State.HEADER:
                return f"protocol header, after {name_of(bytes(self._input))}"
            case _State.INIT:
                return "sasl-init"
            case _State.EXCHANGE:
                return "sasl-response"
            case _State.CHECK:
                return "password check"
            case _State.DONE:
                return "nothing"

    def _proceed(self) -> None:
        if self._state is _State.HEADER:
            self._read_header()
        while self._state in (_State.INIT, _State.EXCHANGE):
            try:
                frame = take_frame(self._input)
            except FrameFault as fault:
                self._refuse(str(fault))
                return
            if frame is None:
                return
            self._on_frame(frame)

    def _read_header(self) -> None:
        seen = bytes(self._input)
        if headers.is_prefix_of_header(seen):
            return
        header = seen[: headers.HEADER_BYTES]
        if header == headers.SASL and self.mechanisms:
            del self._input[: headers.HEADER_BYTES]
            self._output += _offer(self.mechanisms)
            self._state = _State.INIT
        elif header == headers.AMQP and self.can_skip_sasl:
            # AMQP's protocol header stays in the input, since the AMQP layer gets the header as its first bytes.
            self._end(SaslAccepted(self._certificate_user, None))
        else:
            self._output += headers.AMQP if self.can_skip_sasl else headers.SASL
            self._end(SaslRefused(self._why_not(header, seen)))

    def _why_not(self, header: bytes, seen: bytes) -> str:
        if header == headers.AMQP:
            return "authentication is required, but the peer began without a SASL layer"
        if header == headers.SASL:
            return "a client certificate is required, but the peer has none"
        return f"not AMQP 1.0: {name_of(seen)}"

    def _on_frame(self, frame: Frame) -> None:
        match (self._state, frame):
            case (_State.INIT, SaslInit(mechanism, initial_response, _)):
                self._on_init(mechanism, initial_response)
            case (_State.EXCHANGE, SaslResponse(response)):
                self._step(response)
            case _:
                self._refuse(f"{frame_name(frame)} frame while waiting for {self.describe_state()}")

    def _on_init(self, name: str, initial_response: bytes | None) -> None:
        if name not in self.mechanisms:
            self._fail(SaslRefused(f"mechanism {name[:40]!r} was not offered ({' '.join(self.mechanisms)})"))
            return
        self._mechanism = self._make(name)
        self._state = _State.EXCHANGE
        self._step(initial_response)

    def _make(self, name: str) -> ServerMechanism:
        match name:
            case "EXTERNAL" if self._certificate_user is not None:
                return ExternalServer(self._certificate_user)
            case "PLAIN":
                return PlainServer(self._settings.authenticator)
            case "ANONYMOUS":
                return AnonymousServer()
            case scram.NAME:
                return ScramServer(self._settings.authenticator)
        raise LocalStateError(f"a bug: the server offers the SASL mechanism {name}, but has no code for it")

    def _step(self, response: bytes | None) -> None:
        self._rounds += 1
        if self._mechanism is None:
            raise LocalStateError("a bug: a SASL response is to be handled, but no mechanism was made for it")
        if self._rounds > _MAX_ROUNDS:
            self._refuse(f"more than {_MAX_ROUNDS} SASL responses")
            return
        self._take(self._mechanism.on_response(response))

    def _take(self, step: Step) -> None:
        match step:
            case NextChallenge(challenge):
                self._output += encode_frame(SaslChallenge(challenge))
            case PasswordCheck():
                self.password_check = step
                self._state = _State.CHECK
            case AcceptedWithProof(accepted, additional_data):
                self._output += encode_frame(SaslOutcome(_OK, additional_data))
                self._end(accepted)
            case SaslAccepted():
                self._output += _ACCEPTED
                self._end(step)
            case SaslRefused():
                self._fail(step)

    def _fail(self, refused: SaslRefused) -> None:
        self._output += encode_frame(SaslOutcome(_AUTH))
        self._end(refused)

    def _refuse(self, reason: str) -> None:
        """Refuse the peer for ``reason`` without a sasl-outcome, which a peer that breaks SASL's rules may not know."""
        self._end(SaslRefused(reason))

    def _end(self, verdict: Verdict) -> None:
        self._state = _State.DONE
        self.verdict = verdict

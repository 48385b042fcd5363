"""The client's side of the SASL handshake: authentication by the strongest mechanism that both sides support.

Sans-IO. Callers send the bytes of ``output``, which has some from the start, and feed ``receive``. When ``verdict`` is
set the handshake is over, and ``leftover`` is the first input of the AMQP layer.

Spec: AMQP 1.0 [5.3.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wire.sasl import headers, scram
from wire.sasl.client_mechanisms import ClientMechanism, make_mechanism
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
from wire.sasl.verdict import SaslAccepted, SaslRefused, Verdict
from wire.transport.first_bytes import name_of

_MAX_ROUNDS = 8
_OUTCOME_NAMES = {
    1: "authentication failed",
    2: "system error",
    3: "permanent system error",
    4: "temporary system error",
}


@dataclass(frozen=True, slots=True)
class SaslClientSettings:
    """The client's credentials. ``mechanisms`` limits the choice of mechanisms; None: all that the credentials allow.

    ``hostname`` goes into sasl-init, where some servers read the virtual host.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    has_certificate: bool = False
    mechanisms: tuple[str, ...] | None = None
    hostname: str | None = None

    @property
    def usable_mechanisms(self) -> tuple[str, ...]:
        """Names of the mechanisms that the credentials and the setting ``mechanisms`` allow, strongest first."""
        usable = ["EXTERNAL"] if self.has_certificate else []
        if self.user is not None and self.password is not None:
            usable += [scram.NAME, "PLAIN"]
        # ANONYMOUS comes last, also for a client with a name: a server without authentication offers nothing else.
        usable.append("ANONYMOUS")
        return tuple(name for name in usable if self.mechanisms is None or name in self.mechanisms)


class SaslClient:
    """Runs the client's side of one SASL handshake, from the protocol header to the verdict."""

    def __init__(self, settings: SaslClientSettings) -> None:
        self._settings = settings
        self._input = bytearray()
        self._output = bytearray(headers.SASL)
        self._is_header_read = False
        self._mechanism: ClientMechanism | None = None
        self._rounds = 0
        self.verdict: Verdict | None = None

    @property
    def leftover(self) -> bytes:
        """Bytes that the server sent behind its last SASL frame, for the AMQP layer; b"" before the verdict."""
        return bytes(self._input) if self.verdict is not None else b""

    def output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        return data

    def receive(self, data: bytes) -> None:
        self._input += data
        if not self._is_header_read:
            self._read_header()
        while self._is_header_read and self.verdict is None:
            try:
                frame = take_frame(self._input)
                if frame is None:
                    return
                self._on_frame(frame)
            except (FrameFault, scram.ScramFault) as fault:
                self.verdict = SaslRefused(str(fault))

    def describe_state(self) -> str:
        """Return the name of the server's input that the client waits for; logged if the server is silent or leaves."""
        if not self._is_header_read:
            return "protocol header"
        return "sasl-mechanisms" if self._mechanism is None else "sasl-outcome"

    def _read_header(self) -> None:
        seen = bytes(self._input)
        if headers.is_prefix_of_header(seen):
            return
        if seen[: headers.HEADER_BYTES] == headers.SASL:
            del self._input[: headers.HEADER_BYTES]
            self._is_header_read = True
        else:
            self.verdict = SaslRefused(f"the server has no AMQP SASL layer: the server sent {name_of(seen)}")

    def _on_frame(self, frame: Frame) -> None:
        match (self._mechanism, frame):
            case (None, SaslMechanisms(offered)):
                self._choose(offered)
            case (ClientMechanism() as mechanism, SaslChallenge(challenge)):
                self._answer(mechanism, challenge)
            case (ClientMechanism() as mechanism, SaslOutcome(0, additional_data)):
                mechanism.on_success(additional_data)
                user = None if mechanism.name == "ANONYMOUS" else self._settings.user
                self.verdict = SaslAccepted(user, mechanism.name)
            case (ClientMechanism() as mechanism, SaslOutcome(code, _)):
                what = _OUTCOME_NAMES.get(code, f"outcome {code}")
                self.verdict = SaslRefused(
                    f"{what} ({mechanism.name} as {self._settings.user!r})", is_credentials=code == 1
                )
            case _:
                raise FrameFault(
                    f"the server sent {frame_name(frame)}, and the client waits for {self.describe_state()}"
                )

    def _choose(self, offered: tuple[str, ...]) -> None:
        usable = self._settings.usable_mechanisms
        chosen = next((name for name in usable if name in offered), None)
        if chosen is None:
            ours, theirs = " ".join(usable) or "nothing", " ".join(offered) or "nothing"
            self.verdict = SaslRefused(
                f"no common SASL mechanism: the server offers {theirs}, our credentials allow {ours}"
                f"{_expected(usable, offered)}"
            )
            return
        self._mechanism = make_mechanism(chosen, self._settings.user or "", self._settings.password or "")
        init = SaslInit(chosen, self._mechanism.initial_response(), self._settings.hostname)
        self._output += encode_frame(init)

    def _answer(self, mechanism: ClientMechanism, challenge: bytes) -> None:
        self._rounds += 1
        if self._rounds > _MAX_ROUNDS:
            raise FrameFault(f"the server sent more than {_MAX_ROUNDS} SASL challenges")
        self._output += encode_frame(SaslResponse(mechanism.on_challenge(challenge)))


def _expected(usable: Sequence[str], offered: Sequence[str]) -> str:
    """Return the end of a sentence that says with what the client could log in; "" if no advice is known."""
    found = []
    if any(name == "PLAIN" or name.startswith("SCRAM-") for name in offered):
        found.append("a user with a password")
    if "EXTERNAL" in usable:
        found.append("TLS at the listener, which a login by certificate needs")
    return f"; expected {' or '.join(found)}" if found else ""

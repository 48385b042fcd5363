"""Encodes and decodes the five SASL frames. Strict in form, lenient in size.

    +--------+------+------+---------+---------------------------+
    | size 4 | doff | type | unused 2| described list            |
    +--------+------+------+---------+---------------------------+
      octets    1     1=SASL            (extended header skipped)

Spec:  AMQP 1.0 [2.3.1] frame layout, [5.3.3] the performatives.
Sizes: the spec limits SASL frames to 512 bytes; tokens are often longer, so we read up to ``MAX_FRAME_BYTES``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.sasl.values import SaslReader, Value, ValueFault, encode_list

MAX_FRAME_BYTES = 16384
_MIN_FRAME_BYTES = 8
_SASL_TYPE = 1


class FrameFault(Exception):
    """The peer sent bytes that are not a SASL frame, or a SASL frame out of turn. [5.3.2]"""


@dataclass(frozen=True, slots=True)
class SaslMechanisms:
    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaslInit:
    mechanism: str
    initial_response: bytes | None = field(default=None, repr=False)
    hostname: str | None = None


@dataclass(frozen=True, slots=True)
class SaslChallenge:
    challenge: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SaslResponse:
    response: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SaslOutcome:
    """The frame sasl-outcome, by which the server ends the handshake.

    ``code``: 0 accepted, 1 wrong credentials, 2 system error, 3 permanent, 4 temporary system error. [5.3.3.6]
    """

    code: int
    additional_data: bytes | None = field(default=None, repr=False)


Frame = SaslMechanisms | SaslInit | SaslChallenge | SaslResponse | SaslOutcome


def frame_name(frame: Frame) -> str:
    """Return the name of the type of a SASL frame for error texts, such as `challenge`."""
    return type(frame).__name__.removeprefix("Sasl").lower()


MECHANISMS, INIT, CHALLENGE, RESPONSE, OUTCOME = 0x40, 0x41, 0x42, 0x43, 0x44
_DESCRIPTOR_SYMBOLS = {
    "amqp:sasl-mechanisms:list": MECHANISMS,
    "amqp:sasl-init:list": INIT,
    "amqp:sasl-challenge:list": CHALLENGE,
    "amqp:sasl-response:list": RESPONSE,
    "amqp:sasl-outcome:list": OUTCOME,
}


def encode_frame(frame: Frame) -> bytes:
    match frame:
        case SaslMechanisms(mechanisms):
            body = encode_list(MECHANISMS, [mechanisms])
        case SaslInit(mechanism, initial_response, hostname):
            body = encode_list(INIT, [(mechanism,), initial_response, hostname])
        case SaslChallenge(challenge):
            body = encode_list(CHALLENGE, [challenge])
        case SaslResponse(response):
            body = encode_list(RESPONSE, [response])
        case SaslOutcome(code, additional_data):
            body = encode_list(OUTCOME, [code, additional_data])
    return struct.pack(">IBBH", _MIN_FRAME_BYTES + len(body), 2, _SASL_TYPE, 0) + body


def take_frame(buffer: bytearray) -> Frame | None:
    """Remove one SASL frame from the front of ``buffer`` and return it decoded; None while it is incomplete.

    Raises FrameFault for bytes that are not a SASL frame.
    """
    if len(buffer) < _MIN_FRAME_BYTES:
        return None
    size, doff, kind = struct.unpack_from(">IBB", buffer)
    if not _MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES:
        raise FrameFault(f"expected a SASL frame of {_MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} bytes, got {size}")
    if kind != _SASL_TYPE:
        raise FrameFault(f"expected a frame of type {_SASL_TYPE} (SASL), got {kind}")
    if not 8 <= doff * 4 <= size:
        raise FrameFault(f"the SASL frame of {size} bytes has data offset {doff * 4}, expected 8 to {size}")
    if len(buffer) < size:
        return None
    body = bytes(buffer[doff * 4 : size])
    del buffer[:size]
    return _decode_body(body)


def _decode_body(body: bytes) -> Frame:
    try:
        return _decode(SaslReader(body))
    except ValueFault as fault:
        raise FrameFault(f"malformed SASL frame: {fault}") from None


def _decode(reader: SaslReader) -> Frame:
    descriptor, values = reader.described_list()
    reader.expect_end()
    code = _DESCRIPTOR_SYMBOLS.get(descriptor) if isinstance(descriptor, str) else descriptor
    if code not in _MAKERS:
        raise ValueFault(f"unknown performative {descriptor!r}")
    field_count, make = _MAKERS[code]
    if len(values) > field_count:
        raise ValueFault(f"expected a performative of at most {field_count} fields, got {len(values)}")
    return make(values + [None] * (field_count - len(values)))


def _mechanisms(values: list[Value]) -> Frame:
    (names,) = values
    if isinstance(names, tuple):
        return SaslMechanisms(names)
    raise ValueFault("the field sasl-server-mechanisms is not a symbol or an array of symbols")


def _init(values: list[Value]) -> Frame:
    mechanism, initial_response, hostname = values
    if not (isinstance(mechanism, tuple) and len(mechanism) == 1):
        raise ValueFault("the field mechanism of sasl-init is not a symbol")
    if not isinstance(hostname, str | None):
        raise ValueFault("the field hostname of sasl-init is not a string")
    return SaslInit(mechanism[0], _optional_binary("initial-response", initial_response), hostname)


def _challenge(values: list[Value]) -> Frame:
    return SaslChallenge(_binary("challenge", values[0]))


def _response(values: list[Value]) -> Frame:
    return SaslResponse(_binary("response", values[0]))


def _outcome(values: list[Value]) -> Frame:
    code, additional_data = values
    if not isinstance(code, int):
        raise ValueFault("the field code of sasl-outcome is not a ubyte")
    return SaslOutcome(code, _optional_binary("additional-data", additional_data))


def _binary(name: str, value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueFault(f"the field {name} is not binary")
    return value


def _optional_binary(name: str, value: Value) -> bytes | None:
    return None if value is None else _binary(name, value)


_MAKERS: dict[int | None, tuple[int, Callable[[list[Value]], Frame]]] = {
    MECHANISMS: (1, _mechanisms),
    INIT: (3, _init),
    CHALLENGE: (1, _challenge),
    RESPONSE: (1, _response),
    OUTCOME: (2, _outcome),
}

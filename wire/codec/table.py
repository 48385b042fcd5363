"""Table of AMQP's composite types (performatives, termini, ...): their fields, types of fields, mandatory fields.

Spec: AMQP 1.0 [2.7] performatives, [2.8.14] error, [3.4] delivery states, [3.5] termini, [4.5], [5.3.3] SASL.
Lenient where peers are known to be: keys of fields may be strings, and a list may stand for an array of symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto


class FieldType(IntEnum):
    """Types of fields of AMQP's composite types: primitive types, kinds of maps, and groups of composite types."""

    ANY = 0
    BOOLEAN = auto()
    UBYTE = auto()
    USHORT = auto()
    LOOSE_USHORT = auto()
    """A ushort that some peers write as another unsigned integer, which is accepted; the engine then reads no value."""
    UINT = auto()
    ULONG = auto()
    BINARY = auto()
    STRING = auto()
    SYMBOL = auto()
    SYMBOLS = auto()
    """A field with multiple="true": one symbol, or an array of symbols. [1.4]"""
    FIELDS = auto()
    """A map whose keys are symbols. [2.8.13]"""
    MAP = auto()
    ANNOTATIONS = auto()
    """A map whose keys are symbols or ulongs. [3.2.10]"""
    SOURCE = auto()
    TARGET = auto()
    ERROR = auto()
    DELIVERY_STATE = auto()
    OUTCOME = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a composite type. ``most``: largest value of an integer, or most bytes of a binary; None: no limit."""

    name: str
    type: FieldType
    is_mandatory: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Composite:
    """A composite type: a described list, with its descriptor as ``code`` and ``symbol``, and its fields. [1.4]"""

    name: str
    code: int
    symbol: str
    fields: tuple[Field, ...]


def _composite(code: int, name: str, *fields: Field) -> Composite:
    return Composite(name, code, f"amqp:{name}:list", fields)


def _must(name: str, type: FieldType, most: int | None = None) -> Field:
    return Field(name, type, True, most)


_A = FieldType
_TERMINUS = (
    Field("address", _A.STRING),
    Field("durable", _A.UINT, most=2),
    Field("expiry-policy", _A.SYMBOL),
    Field("timeout", _A.UINT),
    Field("dynamic", _A.BOOLEAN),
    Field("dynamic-node-properties", _A.FIELDS),
)
_ERROR_ONLY = (Field("error", _A.ERROR),)

OPEN = _composite(
    0x10,
    "open",
    _must("container-id", _A.STRING),
    Field("hostname", _A.STRING),
    Field("max-frame-size", _A.UINT),
    Field("channel-max", _A.LOOSE_USHORT),
    Field("idle-time-out", _A.UINT),
    Field("outgoing-locales", _A.SYMBOLS),
    Field("incoming-locales", _A.SYMBOLS),
    Field("offered-capabilities", _A.SYMBOLS),
    Field("desired-capabilities", _A.SYMBOLS),
    Field("properties", _A.FIELDS),
)
BEGIN = _composite(
    0x11,
    "begin",
    Field("remote-channel", _A.USHORT),
    _must("next-outgoing-id", _A.UINT),
    _must("incoming-window", _A.UINT),
    _must("outgoing-window", _A.UINT),
    Field("handle-max", _A.UINT),
    Field("offered-capabilities", _A.SYMBOLS),
    Field("desired-capabilities", _A.SYMBOLS),
    Field("properties", _A.FIELDS),
)
ATTACH = _composite(
    0x12,
    "attach",
    _must("name", _A.STRING),
    _must("handle", _A.UINT),
    _must("role", _A.BOOLEAN),
    Field("snd-settle-mode", _A.UBYTE, most=2),
    Field("rcv-settle-mode", _A.UBYTE, most=1),
    Field("source", _A.SOURCE),
    Field("target", _A.TARGET),
    Field("unsettled", _A.MAP),
    Field("incomplete-unsettled", _A.BOOLEAN),
    Field("initial-delivery-count", _A.UINT),
    Field("max-message-size", _A.ULONG),
    Field("offered-capabilities", _A.SYMBOLS),
    Field("desired-capabilities", _A.SYMBOLS),
    Field("properties", _A.FIELDS),
)
FLOW = _composite(
    0x13,
    "flow",
    Field("next-incoming-id", _A.UINT),
    _must("incoming-window", _A.UINT),
    _must("next-outgoing-id", _A.UINT),
    _must("outgoing-window", _A.UINT),
    Field("handle", _A.UINT),
    Field("delivery-count", _A.UINT),
    Field("link-credit", _A.UINT),
    Field("available", _A.UINT),
    Field("drain", _A.BOOLEAN),
    Field("echo", _A.BOOLEAN),
    Field("properties", _A.FIELDS),
)
TRANSFER = _composite(
    0x14,
    "transfer",
    _must("handle", _A.UINT),
    Field("delivery-id", _A.UINT),
    Field("delivery-tag", _A.BINARY, most=32),
    Field("message-format", _A.UINT),
    Field("settled", _A.BOOLEAN),
    Field("more", _A.BOOLEAN),
    Field("rcv-settle-mode", _A.UBYTE, most=1),
    Field("state", _A.DELIVERY_STATE),
    Field("resume", _A.BOOLEAN),
    Field("aborted", _A.BOOLEAN),
    Field("batchable", _A.BOOLEAN),
)
DISPOSITION = _composite(
    0x15,
    "disposition",
    _must("role", _A.BOOLEAN),
    _must("first", _A.UINT),
    Field("last", _A.UINT),
    Field("settled", _A.BOOLEAN),
    Field("state", _A.DELIVERY_STATE),
    Field("batchable", _A.BOOLEAN),
)
DETACH = _composite(0x16, "detach", _must("handle", _A.UINT), Field("closed", _A.BOOLEAN), Field("error", _A.ERROR))
END = _composite(0x17, "end", *_ERROR_ONLY)
CLOSE = _composite(0x18, "close", *_ERROR_ONLY)
ERROR = _composite(
    0x1D, "error", _must("condition", _A.SYMBOL), Field("description", _A.STRING), Field("info", _A.FIELDS)
)
RECEIVED = _composite(0x23, "received", _must("section-number", _A.UINT), _must("section-offset", _A.ULONG))
ACCEPTED = _composite(0x24, "accepted")
REJECTED = _composite(0x25, "rejected", *_ERROR_ONLY)
RELEASED = _composite(0x26, "released")
MODIFIED = _composite(
    0x27,
    "modified",
    Field("delivery-failed", _A.BOOLEAN),
    Field("undeliverable-here", _A.BOOLEAN),
    Field("message-annotations", _A.ANNOTATIONS),
)
SOURCE = _composite(
    0x28,
    "source",
    *_TERMINUS,
    Field("distribution-mode", _A.SYMBOL),
    Field("filter", _A.FIELDS),
    Field("default-outcome", _A.OUTCOME),
    Field("outcomes", _A.SYMBOLS),
    Field("capabilities", _A.SYMBOLS),
)
TARGET = _composite(0x29, "target", *_TERMINUS, Field("capabilities", _A.SYMBOLS))
COORDINATOR = _composite(0x30, "coordinator", Field("capabilities", _A.SYMBOLS))
DECLARED = _composite(0x33, "declared", _must("txn-id", _A.BINARY, 32))
TRANSACTIONAL_STATE = _composite(
    0x34, "transactional-state", _must("txn-id", _A.BINARY, 32), Field("outcome", _A.OUTCOME)
)
SASL_MECHANISMS = _composite(0x40, "sasl-mechanisms", _must("sasl-server-mechanisms", _A.SYMBOLS))
SASL_INIT = _composite(
    0x41,
    "sasl-init",
    _must("mechanism", _A.SYMBOL),
    Field("initial-response", _A.BINARY),
    Field("hostname", _A.STRING),
)
SASL_CHALLENGE = _composite(0x42, "sasl-challenge", _must("challenge", _A.BINARY))
SASL_RESPONSE = _composite(0x43, "sasl-response", _must("response", _A.BINARY))
SASL_OUTCOME = _composite(0x44, "sasl-outcome", _must("code", _A.UBYTE, 4), Field("additional-data", _A.BINARY))

PERFORMATIVES = (OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE)
OUTCOMES = (ACCEPTED, REJECTED, RELEASED, MODIFIED)
DELIVERY_STATES = (*OUTCOMES, RECEIVED, DECLARED, TRANSACTIONAL_STATE)
SASL_FRAMES = (SASL_MECHANISMS, SASL_INIT, SASL_CHALLENGE, SASL_RESPONSE, SASL_OUTCOME)
COMPOSITES = (*PERFORMATIVES, ERROR, *DELIVERY_STATES, SOURCE, TARGET, COORDINATOR, *SASL_FRAMES)

BY_CODE = {composite.code: composite for composite in COMPOSITES}
BY_SYMBOL = {composite.symbol: composite for composite in COMPOSITES}
NESTED = {
    FieldType.SOURCE: (SOURCE,),
    FieldType.TARGET: (TARGET, COORDINATOR),
    FieldType.ERROR: (ERROR,),
    FieldType.DELIVERY_STATE: DELIVERY_STATES,
    FieldType.OUTCOME: (*OUTCOMES, DECLARED),
}
"""Composite types that may stand in a field of each type."""

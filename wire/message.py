"""A whole message as Python values, for clients and for control messages between nodes and operators.

Nodes forward the messages of clients as bytes, without this module.

Spec: AMQP 1.0 [3.2] message format. Durations and times in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import proton
from proton import symbol

from wire.codec.values import Described, Symbol

# The first byte of every message: a message begins with a section, and each section is a described type. [3.2], [1.2]
SECTION = b"\x00"
EMPTY_DATA = b"\x00\x53\x75\xa0\x00"
LONG_DATA = b"\x00\x53\x75\xb0"
MAX_DATA_BYTES = 2**32 - 1
"""Most bytes that one data section of a message body can have."""
SELECTOR = "apache.org:selector-filter:string"


@dataclass(frozen=True, slots=True)
class Message:
    """A message with its fields as Python values. A ``body`` of bytes is a data section, any other an amqp-value."""

    body: Any = None
    to: str | None = None
    subject: str | None = None
    message_id: Any = None
    correlation_id: Any = None
    reply_to: str | None = None
    content_type: str | None = None
    group_id: str | None = None
    durable: bool = False
    priority: int = 4
    ttl_s: float = 0.0
    """Time to live; 0: for ever."""
    creation_time_s: float = 0.0
    delivery_count: int = 0
    first_acquirer: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    """application-properties"""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """message-annotations"""
    delivery_annotations: Mapping[str, Any] = field(default_factory=dict)


class MalformedMessage(ValueError):
    """The bytes are not an AMQP message."""


def encode(message: Message) -> bytes:
    encoded = proton.Message(
        body=message.body,
        inferred=isinstance(message.body, bytes),
        address=message.to,
        subject=message.subject,
        id=message.message_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        content_type=message.content_type,
        group_id=message.group_id,
        durable=message.durable,
        priority=message.priority,
        ttl=message.ttl_s,
        creation_time=message.creation_time_s,
    )
    encoded.properties = dict(message.properties) or None
    encoded.annotations = {symbol(key): value for key, value in message.annotations.items()} or None
    encoded.instructions = {symbol(key): value for key, value in message.delivery_annotations.items()} or None
    return bytes(encoded.encode())


def encode_head(message: Message, body_bytes: int) -> bytes:
    """Return the encoding of ``message`` up to the bytes of its body, a data section of ``body_bytes`` bytes. [3.2.6]

    The caller sends the bytes of the body itself; the body in ``message`` is ignored.
    """
    head = encode(replace(message, body=b""))
    assert head.endswith(EMPTY_DATA), "a body of bytes must be the last section"
    return head.removesuffix(EMPTY_DATA) + LONG_DATA + body_bytes.to_bytes(4, "big")


def decode(data: bytes) -> Message:
    """Return the message that ``data`` is the encoding of. Raises MalformedMessage for any other bytes."""
    if not data.startswith(SECTION):
        raise MalformedMessage(f"the {len(data)} bytes are not an AMQP message: they do not begin with a section")
    try:
        return _decode(data)
    except _UNREADABLE as error:
        raise MalformedMessage(f"the {len(data)} bytes are not an AMQP message: {error}") from None


_UNREADABLE = (proton.ProtonException, ValueError, OverflowError, TypeError, AttributeError, RecursionError)
"""Errors of the engine's bindings over bytes that the engine decodes: text that is not UTF-8, characters beyond
Unicode, map keys that cannot be hashed, values nested too deeply."""


def _decode(data: bytes) -> Message:
    decoded = proton.Message()
    decoded.decode(data)
    return Message(
        body=_plain(decoded.body),
        to=decoded.address,
        subject=decoded.subject,
        message_id=_plain(decoded.id),
        correlation_id=_plain(decoded.correlation_id),
        reply_to=decoded.reply_to,
        content_type=_content_type(decoded),
        group_id=decoded.group_id,
        durable=decoded.durable,
        priority=decoded.priority,
        ttl_s=decoded.ttl,
        creation_time_s=decoded.creation_time,
        delivery_count=decoded.delivery_count,
        first_acquirer=decoded.first_acquirer,
        properties=dict(decoded.properties or {}),
        annotations={str(key): value for key, value in (decoded.annotations or {}).items()},
        delivery_annotations={str(key): value for key, value in (decoded.instructions or {}).items()},
    )


def selector_filter(expression: str) -> dict[str, Any]:
    """Return the filter set with which a source selects messages by an SQL-92 ``expression``, as brokers know it."""
    return {"selector": Described(Symbol(SELECTOR), expression)}


def _content_type(decoded: proton.Message) -> str | None:
    # For a message without content-type proton returns the symbol 'None', which counts as no content-type here.
    text = str(decoded.content_type)
    return None if text == "None" else text


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value

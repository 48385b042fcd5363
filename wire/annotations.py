"""Message annotations: adding annotations to an encoded message, whose other bytes stay as they are.

Spec: AMQP 1.0 [3.2.3] message annotations, which stand behind the header and the delivery annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wire.codec.faults import CodecFault
from wire.codec.values import Described, Symbol, ULong, decode, encode
from wire.sections import scan

MESSAGE_ANNOTATIONS = ULong(0x72)
OWN_PREFIX = "x-opt-amqpmesh-"
"""Prefix of annotations that nodes exchange in modified outcomes; `merged` keeps such annotations out of messages."""


def with_annotations(message: bytes, annotations: Mapping[str, str | int]) -> bytes:
    """Return ``message`` with ``annotations`` in its message-annotations: added, or in place of those of equal names.

    Numbers become unsigned longs.

    A message with unreadable annotations is returned unchanged.
    """
    named: dict[object, object] = {
        Symbol(name): value if isinstance(value, str) else ULong(value) for name, value in annotations.items()
    }
    return _with(message, named) if named else message


def with_encoded(message: bytes, section: bytes) -> bytes:
    """Return ``message`` with the annotations of ``section``, made by `merged`, added, or in place of equal names.

    If the annotations of the message or of the section are unreadable, return ``message`` unchanged.
    """
    try:
        return _with(message, _decoded(section))
    except CodecFault:
        return message


def merged(section: bytes, annotations: Mapping[str, Any]) -> bytes:
    """Return a message-annotations section with the annotations of ``section``, which may be b"", and ``annotations``.

    If both have an annotation of one name, ``annotations`` decides. Those of ``annotations`` with the prefix OWN_PREFIX
    are left out. An unreadable ``section`` is returned unchanged. Values are values of `wire.codec.values`.
    """
    added = {Symbol(name): value for name, value in annotations.items() if not name.startswith(OWN_PREFIX)}
    try:
        return _encoded(_decoded(section) | added) if added else section
    except CodecFault:
        return section


def _with(message: bytes, added: dict[object, object]) -> bytes:
    head = scan(message)
    start, end = head.annotations_start, head.annotations_end
    try:
        return message[:start] + _encoded(_decoded(message[start:end]) | added) + message[end:]
    except CodecFault:
        return message


def _decoded(section: bytes) -> dict[object, object]:
    """Return the annotations of a message-annotations section; {} for b"".

    Raises CodecFault for a malformed section, one that holds no map, or a map with a key twice.
    """
    if not section:
        return {}
    annotations = decode(section).value
    if not isinstance(annotations, dict):
        raise CodecFault(
            "message-annotations", f"expected a map without duplicate keys, got a {type(annotations).__name__}"
        )
    return annotations


def _encoded(annotations: dict[object, object]) -> bytes:
    return encode(Described(MESSAGE_ANNOTATIONS, annotations))

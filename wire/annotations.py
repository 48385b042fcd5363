"""How are annotations put into a message, and the rest left byte for byte?

Spec: AMQP 1.0 [3.2.3] message annotations, which stand behind the header and the delivery annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proton import Data, Described, ProtonException, symbol, ulong

from wire.sections import scan

MESSAGE_ANNOTATIONS = ulong(0x72)
OWN_PREFIX = "x-opt-amqpmesh-"
"""Of annotations that nodes of the mesh tell each other in outcomes: they are not part of a message."""
UNREADABLE = (ProtonException, ValueError, TypeError, RecursionError)
"""Raised for annotations that the engine can neither decode nor encode."""


def with_annotations(message: bytes, annotations: Mapping[str, str | int]) -> bytes:
    """``message`` with these annotations too, in place of those that had their names. Numbers become unsigned longs.

    As it was, where it has annotations that nobody can read.
    """
    named = {symbol(name): value if isinstance(value, str) else ulong(value) for name, value in annotations.items()}
    return _with(message, named) if named else message


def with_encoded(message: bytes, section: bytes) -> bytes:
    """``message`` with the annotations of ``section`` too, as `merged` makes it; those of the same name give way."""
    data = Data()
    try:
        added = _decode(data, section)
    except UNREADABLE:
        return message
    return _with(message, added)


def merged(section: bytes, annotations: Mapping[str, Any]) -> bytes:
    """A section of annotations with these too. ``section`` may be empty; it stays where these cannot be encoded."""
    data = Data()
    try:
        said = _decode(data, section) if section else {}
        added = {symbol(name): value for name, value in annotations.items() if not name.startswith(OWN_PREFIX)}
        return _encode(said | added) if added else section
    except UNREADABLE:
        return section


def _with(message: bytes, added: dict[object, object]) -> bytes:
    head = scan(message)
    start, end = head.annotations_start, head.annotations_end
    # Its binaries are views: into memory that goes when it goes.
    data = Data()
    try:
        said = _decode(data, message[start:end]) if end > start else {}
        return message[:start] + _encode(said | added) + message[end:]
    except UNREADABLE:
        return message


def _decode(data: Data, section: bytes) -> dict[object, object]:
    data.decode(section)
    data.rewind()
    data.next()
    found = data.get_object()
    value = found.value if isinstance(found, Described) else None
    return dict(value) if isinstance(value, dict) else {}


def _encode(annotations: dict[object, object]) -> bytes:
    data = Data()
    data.put_object(Described(MESSAGE_ANNOTATIONS, annotations))
    return bytes(data.encode())

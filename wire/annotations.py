"""How are annotations put into a message, and the rest left byte for byte?

Spec: AMQP 1.0 [3.2.3] message annotations, which stand behind the header and the delivery annotations.
"""

from __future__ import annotations

from collections.abc import Mapping

from proton import Data, Described, ProtonException, symbol, ulong

from wire.sections import scan

MESSAGE_ANNOTATIONS = ulong(0x72)


def with_annotations(message: bytes, annotations: Mapping[str, str | int]) -> bytes:
    """``message`` with these annotations too, in place of those that had their names. Numbers become unsigned longs.

    As it was, where it has annotations that nobody can read.
    """
    head = scan(message)
    start, end = head.annotations_start, head.annotations_end
    try:
        said = _decode(message[start:end]) if end > start else {}
    except ProtonException:
        return message
    for name, value in annotations.items():
        said[symbol(name)] = value if isinstance(value, str) else ulong(value)
    return message[:start] + _encode(said) + message[end:] if said else message


def _decode(section: bytes) -> dict[object, object]:
    data = Data()
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

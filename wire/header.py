"""Header section of an encoded message: writing a new header, and leaving all other bytes of the message as they are.

Spec: AMQP 1.0 [3.2.1].
"""

from __future__ import annotations

import struct
from typing import Any

from wire.sections import MessageHead, scan

_FIELDS = ("durable", "priority", "ttl_s", "first_acquirer", "delivery_count")
_LONGEST = 0xFFFFFFFF


def with_header(message: bytes, **changes: Any) -> bytes:
    """Return ``message`` with ``changes`` (by field names of MessageHead) in its header; all else is unchanged."""
    head = scan(message)
    said = {name: getattr(head, name) for name in _FIELDS}
    return encode_header(MessageHead(**{**said, **changes})) + message[head.header_end :]


def encode_header(head: MessageHead) -> bytes:
    """Return the encoded header section with the header fields of ``head``; its other fields are ignored."""
    ttl = b"\x40" if head.ttl_s is None else struct.pack(">BI", 0x70, min(round(head.ttl_s * 1000), _LONGEST))
    body = b"".join(
        (
            b"\x41" if head.durable else b"\x42",
            bytes((0x50, head.priority)),
            ttl,
            b"\x41" if head.first_acquirer else b"\x42",
            b"\x43" if head.delivery_count == 0 else struct.pack(">BI", 0x70, head.delivery_count),
        )
    )
    return b"\x00\x53\x70\xc0" + bytes((len(body) + 1, 5)) + body

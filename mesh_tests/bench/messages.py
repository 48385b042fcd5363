"""Messages as the load generator makes and reads them, written out by hand."""

from __future__ import annotations

import struct

RUN = 7


def payload(number: int, body_bytes: int = 100, *, run: int = RUN, sent_ns: int = 0, sections: bytes = b"") -> bytes:
    """Sections in front of one data section, with run, number and time at the start of its body."""
    body = struct.pack(">IIQ", run, number, sent_ns) + b"x" * (body_bytes - 16)
    return sections + data_section(body)


def data_section(body: bytes) -> bytes:
    if len(body) < 256:
        return b"\x00\x53\x75\xa0" + bytes([len(body)]) + body
    return b"\x00\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def body_of(message: bytes) -> bytes:
    """Of a message that is one data section, with or without a header before it."""
    data = message.removeprefix(b"\x00\x53\x70\xc0\x02\x01\x41")
    assert data[:3] == b"\x00\x53\x75"
    return data[5:] if data[3] == 0xA0 else data[8:]


def stamp_of(message: bytes) -> tuple[int, int, int]:
    run, number, sent_ns = struct.unpack(">IIQ", body_of(message)[:16])
    return run, number, sent_ns

"""How does a test say on the wire what no engine would say for it? Frames made by hand. [2.3]"""

from __future__ import annotations

import struct


def frame(body: bytes, channel: int = 0, kind: int = 0, size: int | None = None) -> bytes:
    """``size``: what the frame says of itself, when that is to be wrong. [2.3.1]"""
    return struct.pack(">IBBH", 8 + len(body) if size is None else size, 2, kind, channel) + body


def pretended_credit(credit: int = 1000) -> bytes:
    """Fed to a client's own engine: credit for the first link of its first session that nobody gave. [2.7.4]"""
    window = b"\x70" + struct.pack(">I", 128)
    fields = b"\x43" + window + b"\x43" + window + b"\x43\x43\x70" + struct.pack(">I", credit)
    return frame(b"\x00\x53\x13\xc0" + bytes([len(fields) + 1, 7]) + fields)


def window_flow(next_incoming_id: int, window: int) -> bytes:
    """The peer's first session takes so many transfers, counted from that one. [2.7.4]"""
    first, frames = (b"\x70" + struct.pack(">I", value) for value in (next_incoming_id, window))
    fields = first + frames + b"\x43" + b"\x70" + struct.pack(">I", 1000)
    return frame(b"\x00\x53\x13\xc0" + bytes([len(fields) + 1, 4]) + fields)

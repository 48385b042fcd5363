"""AMQP's protocol headers. Spec: AMQP 1.0 [2.2] version negotiation, [5.3.2] SASL."""

from __future__ import annotations

AMQP = b"AMQP\x00\x01\x00\x00"
SASL = b"AMQP\x03\x01\x00\x00"
HEADER_BYTES = 8


def is_prefix_of_header(data: bytes) -> bool:
    """Say whether ``data`` is shorter than a protocol header, and may be the beginning of one: callers then wait."""
    return len(data) < HEADER_BYTES and (data[:4] == b"AMQP"[: len(data[:4])])

"""Names of protocols by the first bytes of a connection, for the log: a peer may have reached the wrong port."""

from __future__ import annotations

_HTTP_METHODS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_SHOWN_BYTES = 16


def name_of(data: bytes) -> str:
    """Return a description of the protocol that a peer seems to speak, after ``data`` as the first bytes."""
    if data[:4] == b"AMQP":
        return _name_of_amqp(data[4:8])
    if data[:2] == b"\x16\x03":
        return "a TLS ClientHello"
    if data[:4] in _HTTP_METHODS:
        return "HTTP: " + _printable(data.split(b"\r")[0].split(b"\n")[0][:40])
    if data[:1] == b"\x10" and b"MQ" in data[2:8]:
        return "MQTT"
    if data[:4] == b"HTTP":
        return "an HTTP response"
    if data[:4] == b"SSH-":
        return "SSH"
    if data[:7] in (b"CONNECT", b"STOMP\r\n"):
        return "STOMP"
    shown = data[:_SHOWN_BYTES]
    return f"{len(data)} bytes that begin {shown.hex(' ')}" if data else "nothing"


def _name_of_amqp(rest: bytes) -> str:
    match tuple(rest):
        case (0, 0, 9, _) | (1, 1, _, _):
            return "AMQP 0-9-1 or older"
        case (0, 1, 0, 0):
            return "AMQP 1.0 without a SASL layer"
        case (2, 1, 0, 0):
            return "AMQP 1.0 that asks for TLS inside the connection"
        case (3, 1, 0, 0):
            return "AMQP 1.0 with a SASL layer"
        case (protocol, major, minor, revision):
            return f"AMQP protocol {protocol} version {major}.{minor}.{revision}"
        case _:
            return f"the first {4 + len(rest)} of 8 bytes of an AMQP header"


def _printable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)

"""Makes and reads the frames that are not sent for each message, and the errors in frames that end a link or
connection.

Spec: AMQP 1.0 [2.7] performatives, [3.5] source and target.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from mesh.bench import values
from mesh.bench.faults import BenchRefused, Malformed, PeerGone
from mesh.bench.values import NULL, DescribedValue, ValueReader
from mesh.client.errors import MeshError

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
ERROR = 0x1D
SOURCE, TARGET = 0x28, 0x29
HEADER = b"AMQP\x00\x01\x00\x00"
FRAME_BYTES = 65536
# The greatest channel and handle that a peer may use.
CHANNEL_MAX = 65535
HANDLE_MAX = 65535
WINDOW_FRAMES = 0x7FFFFFFF
IDLE_TIMEOUT_S = 60.0
SEND_UNSETTLED, SEND_SETTLED, SEND_MIXED = range(3)
UNSETTLED_STATE = 2
_NAMES = {OPEN: "open", BEGIN: "begin", ATTACH: "attach", FLOW: "flow", TRANSFER: "transfer"}
_NAMES |= {DISPOSITION: "disposition", DETACH: "detach", END: "end", CLOSE: "close"}


@dataclass(frozen=True, slots=True)
class Performative:
    """A frame as the load generator decodes it, without a payload; an empty frame has code 0."""

    channel: int
    code: int
    fields: list[Any]
    frame_bytes: int

    def field(self, index: int, default: Any = None) -> Any:
        value = self.fields[index] if index < len(self.fields) else None
        return default if value is None else value

    @property
    def name(self) -> str:
        return _NAMES.get(self.code, f"frame 0x{self.code:02x}")


def encode(channel: int, code: int, *fields: bytes) -> bytes:
    body = values.described(code, fields)
    return struct.pack(">IBBH", 8 + len(body), 2, 0, channel) + body


def decode(data: bytes | bytearray) -> Performative | None:
    """Decode the first frame in ``data``, without its payload.

    Return None if bytes are missing. Raise Malformed for bytes that are not AMQP 1.0.
    """
    if len(data) < 8:
        return None
    size, offset, kind, channel = struct.unpack_from(">IBBH", data)
    if not 8 <= size <= FRAME_BYTES or offset < 2 or offset * 4 > size or kind != 0:
        raise Malformed(f"not AMQP 1.0: wrong size, data offset or type in a frame that begins {data[:8].hex(' ')}")
    if len(data) < size:
        return None
    if size == offset * 4:
        return Performative(channel, 0, [], size)
    body = ValueReader(bytes(data[offset * 4 : size])).value()
    if not isinstance(body, DescribedValue) or not isinstance(body.value, list) or not isinstance(body.descriptor, int):
        raise Malformed("not AMQP 1.0: a frame without a performative")
    return Performative(channel, body.descriptor, body.value, size)


def open_frame(container_id: str, hostname: str) -> bytes:
    return encode(
        0,
        OPEN,
        values.string(container_id),
        values.string(hostname),
        values.uint(FRAME_BYTES),
        values.ushort(CHANNEL_MAX),
        values.uint(int(IDLE_TIMEOUT_S * 1000)),
    )


def begin_frame(channel: int, peer_channel: int | None = None) -> bytes:
    answered = NULL if peer_channel is None else values.ushort(peer_channel)
    return encode(
        channel,
        BEGIN,
        answered,
        values.uint(0),
        values.uint(WINDOW_FRAMES),
        values.uint(WINDOW_FRAMES),
        values.uint(HANDLE_MAX),
    )


def attach_frame(
    channel: int,
    name: str,
    *,
    is_receiver: bool,
    address: str,
    settle_mode: int = SEND_MIXED,
    handle: int = 0,
    is_lasting: bool = False,
) -> bytes:
    """Make an attach frame; the terminus at the peer has ``address``, the terminus at our end has no address.

    With an empty ``address``, each message of the link names its own address. [2.6.3]
    ``is_lasting``: the link receives from a durable subscription, which outlives the link. [3.5.3, 3.5.5, 3.5.6]
    """
    there = [values.string(address) if address else NULL]
    if is_lasting:
        there += [values.uint(UNSETTLED_STATE), values.symbol("never")]
    source, target = (there, []) if is_receiver else ([], there)
    fields = [
        values.string(name),
        values.uint(handle),
        values.boolean(is_receiver),
        values.ubyte(settle_mode),
        values.ubyte(0),
        values.described(SOURCE, source),
        values.described(TARGET, target),
    ]
    if not is_receiver:
        fields += [NULL, NULL, values.uint(0)]
    return encode(channel, ATTACH, *fields)


def detach_frame(channel: int, handle: int = 0) -> bytes:
    return encode(channel, DETACH, values.uint(handle), values.TRUE)


def flow_frame(channel: int, next_incoming_id: int, handle: int, delivery_count: int, credit: int) -> bytes:
    """Make a flow frame for a link, in a session in which this generator has sent no transfer."""
    window = values.uint(WINDOW_FRAMES)
    ours = (values.uint(next_incoming_id), window, values.uint(0), window)
    return encode(channel, FLOW, *ours, values.uint(handle), values.uint(delivery_count), values.uint(credit))


CLOSE_FRAME = encode(0, CLOSE)
EMPTY_FRAME = struct.pack(">IBBH", 8, 2, 0, 0)


def why_ended(frame: bytes, what: str) -> MeshError:
    """Return the error to raise for a frame that was not expected during a measurement: the peer's reason in a detach,
    end or close, else a text that names the frame.
    """
    performative = decode(frame)
    if performative is None or performative.code not in (DETACH, END, CLOSE):
        name = performative.name if performative is not None else "frame"
        return PeerGone(f"{what}: the peer sent an unexpected {name}")
    error = performative.field({DETACH: 2, END: 0, CLOSE: 0}[performative.code])
    return ended(performative.code, error, what)


def ended(code: int, error: Any, what: str) -> MeshError:
    condition, description = read_error(error)
    if code == CLOSE:
        return PeerGone(f"the peer closed the connection: {description or condition}")
    return BenchRefused(what, condition, description)


def read_error(error: Any) -> tuple[str, str | None]:
    """Return the condition and the description of an AMQP error; without an error, the text `without a reason` stands
    for the condition. [2.8.14]
    """
    if isinstance(error, DescribedValue) and isinstance(error.value, list) and error.value:
        description = error.value[1] if len(error.value) > 1 else None
        return str(error.value[0]), str(description) if description else None
    return "without a reason", None

"""A trace of one connection: a line for each frame of the peer, and of ours, with all fields of the performative.

The payload of a transfer, the message with its body, is never part of a line, only its size is; nor are frames of SASL,
which no endpoint sees. A traced endpoint has its methods for bytes replaced by methods of the trace, so an endpoint
without a trace pays nothing. A direction is traced from the first frame that begins after the trace.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from wire.codec.faults import CodecFault
from wire.codec.frames import HEADER_BYTES, CompositeValue, decode_frame
from wire.codec.values import Array, Described, Pairs
from wire.endpoint import Endpoint

MOST_PER_S: Final = 1000
"""Most frames of a connection that become lines in a second; the next line after others says how many are left out."""
_MOST_TEXT_CHARS: Final = 500
_MOST_ITEMS: Final = 50
IN, OUT = "in", "out"

TraceLine = dict[str, Any]


class FrameTrace:
    """Traces the frames of ``endpoint`` from ``begin`` until ``end``, or until the connection is gone.

    ``write(line)`` takes each line; ``now()`` is a monotonic clock. ``on_over(reason)`` is called at the end.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        write: Callable[[TraceLine], None],
        now: Callable[[], float],
        on_over: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._write = write
        self._now = now
        self._on_over = on_over
        self._in, self._out = _Frames(), _Frames()
        self._second = 0
        self._count = self._skipped = 0
        self._is_on = False

    def begin(self) -> None:
        """Replace the endpoint's methods for bytes; the endpoint must have no trace yet."""
        endpoint = self._endpoint
        self._is_on = True
        # The last output ended with a whole frame, unless the socket did not take all of it.
        self._out.is_whole = not endpoint.is_output_blocked
        vars(endpoint).update(receive=self._receive, output=self._output, send_to=self._send_to, free=self._free)

    def end(self, reason: str) -> None:
        """Give the endpoint its own methods back; a second call does nothing."""
        if not self._is_on:
            return
        self._is_on = False
        for name in ("receive", "output", "send_to", "free"):
            del vars(self._endpoint)[name]
        self._on_over(reason)

    # In place of the endpoint's methods
    def _receive(self, chunk: bytes | memoryview, *rest: int) -> None:
        endpoint = self._endpoint
        if not self._in.is_whole:
            self._in.is_whole = not (endpoint.gate.is_in_frame or endpoint.has_rest)
        if self._in.is_whole:
            self._tell(IN, self._in.feed(bytes(chunk)))
        type(endpoint).receive(endpoint, chunk, *rest)

    def _output(self) -> bytes:
        data = type(self._endpoint).output(self._endpoint)
        if self._out.is_whole:
            self._tell(OUT, self._out.feed(data))
        elif not data:
            self._out.is_whole = True
        return data

    def _send_to(self, socket: int) -> bytes:
        # The endpoint's own method would give bytes to the socket that nobody else sees. The caller writes what this
        # method returns, and calls again.
        return self._endpoint.output()

    def _free(self) -> None:
        endpoint = self._endpoint
        self.end("the connection ended")
        endpoint.free()

    # Lines
    def _tell(self, direction: str, frames: Iterator[bytes | int]) -> None:
        for frame in frames:
            second = int(self._now())
            if second != self._second:
                self._second, self._count = second, 0
            self._count += 1
            if self._count > MOST_PER_S:
                self._skipped += 1
                continue
            line = line_of(direction, frame)
            if self._skipped:
                line["skipped"], self._skipped = self._skipped, 0
            self._write(line)
            if not self._is_on:
                return


class _Frames:
    """Splits the bytes of one direction into frames. ``is_whole``: the bytes so far ended with a whole frame once."""

    def __init__(self) -> None:
        self.is_whole = False
        self._kept = b""
        self._is_broken = False

    def feed(self, data: bytes) -> Iterator[bytes | int]:
        """Yield each whole frame; for a size that no frame has, that size, after which nothing is split any more."""
        if self._is_broken:
            return
        data = self._kept + data if self._kept else data
        at = 0
        while len(data) - at >= HEADER_BYTES:
            (size,) = struct.unpack_from(">I", data, at)
            if size < HEADER_BYTES:
                self._is_broken = True
                yield size
                return
            if size > len(data) - at:
                break
            yield data[at : at + size]
            at += size
        self._kept = data[at:]


def line_of(direction: str, frame: bytes | int) -> TraceLine:
    """Return the line for a frame: direction, channel, name and fields of the performative, size of the payload."""
    if isinstance(frame, int):
        return {"direction": direction, "frame": "malformed", "error": f"a frame of {frame} bytes"}
    channel = frame[6] << 8 | frame[7]
    try:
        decoded = decode_frame(frame)
    except CodecFault as fault:
        return {
            "direction": direction, "channel": channel, "frame": "malformed", "bytes": len(frame), "error": str(fault)
        }  # fmt: skip
    if decoded.performative is None:
        return {"direction": direction, "channel": channel, "frame": "heartbeat"}
    line: TraceLine = {"direction": direction, "channel": channel, "frame": decoded.performative.type.name}
    line["fields"] = {name: plain(value) for name, value in decoded.performative.fields.items()}
    if decoded.payload:
        line["payload_bytes"] = len(decoded.payload)
    return line


def plain(value: Any) -> Any:
    """Return a field's value as JSON has it: long text and long lists are cut, and bytes are hex digits."""
    match value:
        case None | bool() | float():
            return value
        case int():
            return int(value)
        case str():
            text = str(value)
            return text if len(text) <= _MOST_TEXT_CHARS else f"{text[:_MOST_TEXT_CHARS]}... ({len(text):,} characters)"
        case bytes():
            cut = value[: _MOST_TEXT_CHARS // 2].hex()
            return cut if len(value) <= _MOST_TEXT_CHARS // 2 else f"{cut}... ({len(value):,} bytes)"
        case CompositeValue():
            return {value.type.name: {name: plain(each) for name, each in value.fields.items()}}
        case dict():
            return {str(plain(key)): plain(each) for key, each in list(value.items())[:_MOST_ITEMS]}
        case Pairs():
            return str(value)[:_MOST_TEXT_CHARS]
        case Array():
            return [plain(each) for each in value.elements[:_MOST_ITEMS]]
        case list() | tuple():
            return [plain(each) for each in value[:_MOST_ITEMS]]
        case Described():
            return {str(plain(value.descriptor)): plain(value.value)}
        case _:
            return str(value)[:_MOST_TEXT_CHARS]

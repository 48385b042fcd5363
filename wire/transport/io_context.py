"""The log, the clock, the read buffer and the time for handshakes, which all connections of one event loop share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.log_event import Emit
from wire.transport.handshake_slices import HandshakeSlices

_INPUT_BYTES = 262_144


def _new_buffer() -> memoryview:
    return memoryview(bytearray(_INPUT_BYTES))


@dataclass(frozen=True, slots=True)
class IoContext:
    """The log, the clock, the read buffer and the time for handshakes that all connections of an event loop share.

    The input of every connection is read into ``input_buffer``, from which the connection's protocol takes the bytes at
    once, before another connection reads. ``handshakes`` measures time with ``now``.
    """

    log: Emit
    now: Callable[[], float] = time.monotonic
    input_buffer: memoryview = field(default_factory=_new_buffer)
    handshakes: HandshakeSlices = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "handshakes", HandshakeSlices(self.now))

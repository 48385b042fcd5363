"""The log, the clock and the read buffer, which all connections of one event loop share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.log_event import Emit

_INPUT_BYTES = 262_144


def _new_buffer() -> memoryview:
    return memoryview(bytearray(_INPUT_BYTES))


@dataclass(frozen=True, slots=True)
class IoContext:
    """The log, the clock and the read buffer for all connections of an event loop.

    Input of every connection is read into ``input_buffer``, and its protocol takes the bytes out at once.
    """

    log: Emit
    now: Callable[[], float] = time.monotonic
    input_buffer: memoryview = field(default_factory=_new_buffer)

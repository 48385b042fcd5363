"""How does a command that has started processes end when it is told to?"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that what was started is stopped."""

    def unwind(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, unwind) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

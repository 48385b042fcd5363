"""How a drill that is told to end does so: in order, with what is broken healed and the report written."""

from __future__ import annotations

import asyncio
import signal


def stopped_by_signals() -> asyncio.Event:
    """Set by Ctrl-C, or when we are told to end."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop

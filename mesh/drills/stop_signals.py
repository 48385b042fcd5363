"""Lets a signal end a drill in order: its faults are healed, and the report is written."""

from __future__ import annotations

import asyncio
import signal


def stopped_by_signals() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and SIGHUP set, in place of ending this process."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop

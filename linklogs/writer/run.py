"""The writer of link logs as a process: a look at the rings every ``poll_s`` seconds, until the process is to stop."""

from __future__ import annotations

import threading
import time
from collections import deque

from linklogs.writer.encoders import HelperEncoder
from linklogs.writer.events import SignalIgnored, WriterStarted, WriterStopped, tell
from linklogs.writer.intake import IntakeTime
from linklogs.writer.settings import Settings
from linklogs.writer.writer import Writer


def run(settings: Settings, stop: threading.Event, ignored: deque[str]) -> None:
    """Run the writer until ``stop`` is set; then move all records so far into files.

    Raises WriterInUse or OSError at the start. Signal handlers put the names of ignored signals into ``ignored``: each
    is logged with the next look.
    """
    encoder = HelperEncoder(settings.out, settings.redact_key, settings.redact_columns)
    writer = Writer(settings, encoder=encoder)
    tell(WriterStarted(str(settings.rings), str(settings.out)))
    try:
        while not stop.wait(settings.poll_s):
            while ignored:
                tell(SignalIgnored(ignored.popleft()))
            writer.step(_now())
        writer.finish(_now())
    finally:
        writer.close()
    tell(WriterStopped())


def _now() -> IntakeTime:
    return IntakeTime(time.time_ns() // 1000, time.monotonic())

"""Keeps SIGHUP, SIGUSR1 and SIGUSR2, sent out of habit by administrators and log rotation, from ending a process.

There is one exception. The kernel sends SIGHUP, too, when the terminal of a process is gone: a process in the
foreground then stops in order, unless `nohup` started the process.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from wire.log import Emit, Level, LogEvent

HARMLESS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
TERMINAL = "/dev/tty"


@dataclass(frozen=True, slots=True)
class SignalIgnored(LogEvent):
    """The process goes on as before: a signal makes no process read or open a file again."""

    level: ClassVar[Level] = "warning"

    signal: str


class HarmlessSignals:
    """Ignores the signals from the making of this object on; ``watch`` or ``call`` begins to report ignored signals."""

    def __init__(self) -> None:
        is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._has_terminal = not is_kept_alive and has_terminal()
        for number in HARMLESS:
            signal.signal(number, signal.SIG_IGN)

    def watch(self, emit: Emit, hang_up: Callable[[], object]) -> None:
        """Log each signal from the running event loop; call ``hang_up`` when the terminal is gone."""
        loop = asyncio.get_running_loop()
        for number in HARMLESS:
            loop.add_signal_handler(number, self._on_signal, number, lambda name: emit(SignalIgnored(name)), hang_up)

    def call(self, ignored: Callable[[str], object], hang_up: Callable[[], object]) -> None:
        """Report without an event loop: a handler, which may interrupt any code, calls ``ignored`` with the name."""
        for number in HARMLESS:
            signal.signal(number, lambda number, _: self._on_signal(signal.Signals(number), ignored, hang_up))

    def _on_signal(
        self, number: signal.Signals, ignored: Callable[[str], object], hang_up: Callable[[], object]
    ) -> None:
        if number is signal.SIGHUP and self._has_terminal and not has_terminal():
            hang_up()
        else:
            ignored(number.name)


def has_terminal() -> bool:
    """Whether the process has a controlling terminal that still exists."""
    try:
        os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True

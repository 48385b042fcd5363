"""Signals that end no process of a mesh: administrators and log rotation send SIGHUP, SIGUSR1 and SIGUSR2 out of habit.

There is one exception. The kernel sends SIGHUP, too, when the terminal of a process is gone: what runs in the
foreground then ends in order, unless `nohup` started it.
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
    """The process goes on as before: nothing is read or opened again at a signal."""

    level: ClassVar[Level] = "warning"

    signal: str


class HarmlessSignals:
    """From now on these signals do not end the process; those that come before ``watch`` or ``call`` go unmentioned."""

    def __init__(self) -> None:
        is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._has_terminal = not is_kept_alive and has_terminal()
        for number in HARMLESS:
            signal.signal(number, signal.SIG_IGN)

    def watch(self, emit: Emit, hang_up: Callable[[], object]) -> None:
        """Log each of them in the running event loop; ``hang_up`` is called when the terminal is gone."""
        loop = asyncio.get_running_loop()
        for number in HARMLESS:
            loop.add_signal_handler(number, self._on_signal, number, lambda name: emit(SignalIgnored(name)), hang_up)

    def call(self, ignored: Callable[[str], object], hang_up: Callable[[], object]) -> None:
        """The same without an event loop: ``ignored`` hears the signal's name, between two steps of any code."""
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
    """Whether the process has a controlling terminal that is still there."""
    try:
        os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True

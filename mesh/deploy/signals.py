"""Makes a process report and survive SIGHUP, SIGUSR1 and SIGUSR2, which administrators and log rotation send.

There is one exception: the kernel sends SIGHUP, too, when the terminal of a process is gone. A process in the
foreground then stops in order, unless `nohup` started the process.
"""

from __future__ import annotations

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
    """The process got `signal` and goes on as before: no signal makes amqpmesh read a file or open its log again."""

    level: ClassVar[Level] = "warning"

    signal: str


class HarmlessSignals:
    """Ignores SIGHUP, SIGUSR1 and SIGUSR2 from its construction on; ``watch`` or ``call`` begins to report them."""

    def __init__(self) -> None:
        is_kept_alive = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._has_terminal = not is_kept_alive and has_terminal()
        for number in HARMLESS:
            signal.signal(number, signal.SIG_IGN)

    def watch(self, emit: Emit, hang_up: Callable[[], object]) -> None:
        """Log each ignored signal in the running event loop; call ``hang_up`` instead at SIGHUP for a lost terminal."""
        # Imported here: a process without an event loop, such as the writer of link logs, takes 7 MB less memory.
        import asyncio

        loop = asyncio.get_running_loop()
        for number in HARMLESS:
            loop.add_signal_handler(number, self._on_signal, number, lambda name: emit(SignalIgnored(name)), hang_up)

    def call(self, ignored: Callable[[str], object], hang_up: Callable[[], object]) -> None:
        """Report signals in a process without an event loop: call ``ignored`` with the name of each ignored signal, and
        ``hang_up`` instead at SIGHUP for a lost terminal.

        Both are called in the handler of the signal, which may interrupt any code of the main thread.
        """
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
    """Tell whether the process has a controlling terminal that still exists."""
    try:
        os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True

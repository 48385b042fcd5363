"""The back-off before the supervisor starts a dead node again, by the cause of the death.

A node that was up and that somebody else killed (SIGKILL, SIGTERM, ...) starts again after ``first_s``: the node starts
fine, so a longer wait would only keep the users of the node waiting. A node that dies of the same cause again and again
is in a crash loop: its delay doubles at each death, to ``longest_up_s`` if the node was up before this death, and to
``longest_s`` if the node could not even start. Another cause, or a life of ``stable_s``, begins again with ``first_s``.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

OUTSIDE_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that a process does not get because of a fault of its own."""
NUMBER = re.compile(r"(0x)?[0-9a-f]*[0-9][0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Death:
    """How a process of a node ended.

    ``exit_code`` is the negative signal number if a signal ended the process. ``was_up``: the node had answered on its
    control socket, or the link log writer had run for 2 s.
    """

    exit_code: int
    cause: str
    ran_s: float
    was_up: bool

    @property
    def is_outside_kill(self) -> bool:
        return self.was_up and -self.exit_code in OUTSIDE_SIGNALS

    def has_cause_of(self, other: Death) -> bool:
        """Return whether both deaths have the same exit code and sentence, whatever numbers the sentences have."""
        return self.exit_code == other.exit_code and NUMBER.sub("", self.cause) == NUMBER.sub("", other.cause)


class Backoff:
    def __init__(
        self, first_s: float = 0.5, longest_up_s: float = 4.0, longest_s: float = 10.0, stable_s: float = 30.0
    ) -> None:
        self._first_s = first_s
        self._longest_up_s = longest_up_s
        self._longest_s = longest_s
        self._stable_s = stable_s
        self._delay_s = first_s
        self._last: Death | None = None

    def on_exit(self, death: Death) -> float:
        """Return the seconds to wait before the next start of the node."""
        last, self._last = self._last, death
        if last is None or death.is_outside_kill or death.ran_s >= self._stable_s or not death.has_cause_of(last):
            self._delay_s = self._first_s
        else:
            self._delay_s = min(2 * self._delay_s, self._longest_up_s if death.was_up else self._longest_s)
        return self._delay_s

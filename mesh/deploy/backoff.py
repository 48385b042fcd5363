"""The back-off before the supervisor starts a dead node again.

The delay doubles at each death, from ``first_s`` up to ``longest_s``; a node that ran for at least ``stable_s`` before
it died starts again after ``first_s``.
"""

from __future__ import annotations


class Backoff:
    def __init__(self, first_s: float = 0.5, longest_s: float = 30.0, stable_s: float = 30.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._stable_s = stable_s
        self._next_s = first_s

    def on_exit(self, ran_s: float) -> float:
        """Return the seconds to wait before the next start of a node that ran for ``ran_s`` and died."""
        if ran_s >= self._stable_s:
            self._next_s = self._first_s
        delay_s = self._next_s
        self._next_s = min(2 * delay_s, self._longest_s)
        return delay_s

"""How long to wait before a node that died is started again.

Doubles from ``first_s`` to ``longest_s``; a node that ran for ``stable_s`` has earned the first delay again.
"""

from __future__ import annotations


class Backoff:
    def __init__(self, first_s: float = 0.5, longest_s: float = 30.0, stable_s: float = 30.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._stable_s = stable_s
        self._next_s = first_s

    def on_exit(self, ran_s: float) -> float:
        """The node ran for ``ran_s`` and died: seconds until it may be started again."""
        if ran_s >= self._stable_s:
            self._next_s = self._first_s
        delay_s = self._next_s
        self._next_s = min(2 * delay_s, self._longest_s)
        return delay_s

"""Collect the changes of this router's own addresses until the next MAU may go out.

Sans-IO. The first change goes out at once; changes within ``interval_s`` of the last MAU wait and go out together, so
that ten thousand attaches in a second become fifty MAUs, not ten thousand. An edge router collects the keys of its
next ASK in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Set


class Advertisements:
    """The changes of a set of advertised routing keys that are not sent yet.

    Always: ``_added`` holds only keys not yet advertised, ``_removed`` only keys that are advertised.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._not_before = 0.0
        self._added: set[str] = set()
        self._removed: set[str] = set()

    def change(self, added: Iterable[str], removed: Iterable[str], told: Set[str]) -> None:
        for key in added:
            self._removed.discard(key)
            if key not in told:
                self._added.add(key)
        for key in removed:
            self._added.discard(key)
            if key in told:
                self._removed.add(key)

    def take(self, now: float, *, at_once: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return the changes to send now, as sorted keys (added, removed), and forget these changes.

        Return None if nothing changed, or, without ``at_once``, if the last changes were returned less than
        ``interval_s`` ago.
        """
        due = self.next_deadline()
        if due is None or (now < due and not at_once):
            return None
        self._not_before = now + self._interval_s
        told = tuple(sorted(self._added)), tuple(sorted(self._removed))
        self._added.clear()
        self._removed.clear()
        return told

    def next_deadline(self) -> float | None:
        return self._not_before if self._added or self._removed else None

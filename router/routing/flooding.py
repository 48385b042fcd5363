"""Collect the changed link states, and the neighbors that already have each, until the next flood may go out.

Sans-IO. The first change goes out at once; changes within ``interval_s`` of the last flood wait and go out together,
each in its newest version. A lost connection or a higher cost does not wait, because other routers still send traffic
there. So when a mesh of a thousand routers starts, a router gets dozens of messages from each neighbor, not thousands.
"""

from __future__ import annotations

from collections.abc import Iterable


class Flooding:
    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._not_before = 0.0
        self._pending: dict[str, set[str]] = {}
        """Router whose link state changed -> neighbors that already have this version."""

    def __contains__(self, router: str) -> bool:
        return router in self._pending

    def on_change(self, router: str, learnt_from: str | None) -> None:
        """Note that the link state of ``router`` changed, to be sent to all neighbors but ``learnt_from``.

        ``learnt_from``: the neighbor that sent the change; None for this router's own link state.
        """
        self._pending[router] = set() if learnt_from is None else {learnt_from}

    def on_same(self, router: str, neighbor: str) -> None:
        """Note that ``neighbor`` has the present link state of ``router``, so that it is not sent to ``neighbor``."""
        if (knowing := self._pending.get(router)) is not None:
            knowing.add(neighbor)

    def on_told_all(self, neighbor: str) -> None:
        for knowing in self._pending.values():
            knowing.add(neighbor)

    def take(self, neighbors: Iterable[str], now: float, *, at_once: bool = False) -> dict[str, list[str]]:
        """Return, for each of ``neighbors``, the routers whose changed link states have to be sent there now.

        A neighbor that lacks nothing is left out. All changes are then taken as sent. Without ``at_once``, the result
        is empty for ``interval_s`` after the last flood.
        """
        due = self.next_deadline()
        if due is None or (now < due and not at_once):
            return {}
        told = {
            neighbor: lacking
            for neighbor in neighbors
            if (lacking := [router for router, knowing in self._pending.items() if neighbor not in knowing])
        }
        self._pending.clear()
        if told:
            self._not_before = now + self._interval_s
        return told

    def next_deadline(self) -> float | None:
        return self._not_before if self._pending else None

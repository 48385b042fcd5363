"""How long senders had no credit, apart by the cause that the node recorded. Sans-IO."""

from __future__ import annotations

from typing import Final

CREDIT_CAUSES: Final = ("no_taker", "takers", "full_queue", "disk", "memory")
"""Causes of a lack of credit, as `recording.columns` has them: the first two of routers, the others of brokers."""


def _seconds_of(cause: str) -> property:
    return property(lambda times: times.by_cause[cause] / 1e6)


class StarvedTimes:
    """Times without credit, in us: ``total_us``, and ``by_cause``. Times only grow."""

    __slots__ = ("by_cause", "total_us")

    def __init__(self) -> None:
        self.total_us = 0
        self.by_cause = dict.fromkeys(CREDIT_CAUSES, 0)

    no_taker_s = _seconds_of("no_taker")
    takers_s = _seconds_of("takers")
    full_queue_s = _seconds_of("full_queue")
    disk_s = _seconds_of("disk")
    memory_s = _seconds_of("memory")

    def add(self, cause: str | None, starved_us: int) -> None:
        """Add a time; one with a cause that this version does not know counts in the total only."""
        self.total_us += starved_us
        if cause in self.by_cause:
            self.by_cause[cause] += starved_us


NEVER_STARVED: Final = StarvedTimes()
"""The times of a link that always had credit: one object for all such links, to which nothing is added."""

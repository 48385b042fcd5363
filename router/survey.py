"""Is a queue known to be empty, and nothing that it held still under way?

Sans-IO. A round is a drain of the link from the queue: credit that comes back unused says that the broker had nothing
more to give. Messages may come back to the queue after that, so a round only counts when nothing was under way, to the
queue or from it, when it began and when it ended. And one is not enough: the engine may write a drain before the
outcome that gave something back. So two in a row must count, with nothing happening between. Counts are deliveries.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Traffic:
    """Totals of what came from the queue and what was sent to it, and how many of both are not settled."""

    came: int
    sent: int
    under_way: int


class Finding(Enum):
    UNKNOWN = "there may be more"
    BUSY = "there is no more, but something is under way"
    QUIET = "nothing there and nothing under way, once"
    EMPTY = "twice: it is known"


class Survey:
    """Always: between ``ask`` and ``answer`` ``is_asking``."""

    def __init__(self) -> None:
        self._begun = Traffic(0, 0, 0)
        self._quiet: Traffic | None = None
        self.is_asking = False

    def ask(self, traffic: Traffic) -> None:
        """A drain was asked for."""
        self._begun, self.is_asking = traffic, True

    def answer(self, traffic: Traffic, *, is_dry: bool) -> Finding:
        """It was answered; ``is_dry``: by giving credit back."""
        self.is_asking = False
        before, self._quiet = self._quiet, None
        if not is_dry:
            return Finding.UNKNOWN
        if traffic != self._begun or traffic.under_way:
            return Finding.BUSY
        if before == traffic:
            return Finding.EMPTY
        self._quiet = traffic
        return Finding.QUIET

    def give_up(self) -> None:
        """The link is gone: the drain will not be answered."""
        self._quiet, self.is_asking = None, False

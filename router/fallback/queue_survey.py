"""Find out whether a queue is empty, with none of its messages still under way.

Sans-IO. A round is a drain of the link from the queue: credit that comes back unused says that the broker had no more
messages. Messages may return to the queue after that, so a round counts only if nothing was under way, to the queue
or from it, when the round began and when it ended. One round is not enough, because the engine may write a drain
before the outcome that gave a message back. So two rounds in a row must count, with no traffic in between. Counts are
deliveries.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Traffic:
    """Totals of deliveries from the queue and to the queue, and the number of both that are not settled."""

    came: int
    sent: int
    under_way: int


class Finding(Enum):
    UNKNOWN = "there may be more"
    BUSY = "there is no more, but something is under way"
    QUIET = "nothing there and nothing under way, once"
    EMPTY = "twice: it is known"


class Survey:
    """Always: ``is_asking`` is True between ``ask`` and ``answer``."""

    def __init__(self) -> None:
        self._begun = Traffic(0, 0, 0)
        self._quiet: Traffic | None = None
        self.is_asking = False

    def ask(self, traffic: Traffic) -> None:
        """A drain was requested."""
        self._begun, self.is_asking = traffic, True

    def answer(self, traffic: Traffic, *, is_dry: bool) -> Finding:
        """The drain was answered; ``is_dry``: the answer gave credit back."""
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

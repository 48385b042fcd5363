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
class QueueTraffic:
    """Totals of deliveries from the queue and to the queue, and the number of both that are not settled."""

    came: int
    sent: int
    under_way: int


class SurveyResult(Enum):
    UNKNOWN = "there may be more"
    BUSY = "there is no more, but something is under way"
    QUIET = "nothing there and nothing under way, once"
    EMPTY = "twice: it is known"


class QueueSurvey:
    """The rounds of drains by which a router finds out whether a queue is empty.

    Always: ``is_asking`` is True between ``ask`` and ``answer``, while a drain is under way.
    """

    def __init__(self) -> None:
        self._begun = QueueTraffic(0, 0, 0)
        self._quiet: QueueTraffic | None = None
        self.is_asking = False

    def ask(self, traffic: QueueTraffic) -> None:
        """Begin a round: a drain was requested, and ``traffic`` was counted until now."""
        self._begun, self.is_asking = traffic, True

    def answer(self, traffic: QueueTraffic, *, is_dry: bool) -> SurveyResult:
        """End the round, as the drain was answered; return what is known now.

        ``is_dry``: the answer gave credit back unused, so the broker had no more messages.
        """
        self.is_asking = False
        before, self._quiet = self._quiet, None
        if not is_dry:
            return SurveyResult.UNKNOWN
        if traffic != self._begun or traffic.under_way:
            return SurveyResult.BUSY
        if before == traffic:
            return SurveyResult.EMPTY
        self._quiet = traffic
        return SurveyResult.QUIET

    def give_up(self) -> None:
        """The link from the queue is gone: forget the drain under way, and the quiet round before."""
        self._quiet, self.is_asking = None, False

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
    """Counts of deliveries: all that came from the queue, all sent to the queue, and those of both not settled yet."""

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
        """Begin a round: the caller drains the link from the queue, and ``traffic`` was counted until now."""
        self._begun, self.is_asking = traffic, True

    def answer(self, traffic: QueueTraffic, *, is_dry: bool) -> SurveyResult:
        """End the round, whose drain was answered; return what is known about the queue now.

        ``traffic``: counted until now. ``is_dry``: the answer to the drain gave credit back unused, so the broker had
        no more messages.
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
        """Forget the drain under way, and the last round that counted; called when the link from the queue is gone."""
        self._quiet, self.is_asking = None, False

"""The keeper of one broker's share of a fallback queue: knows whether the share holds messages, and feeds the address.

The share is the messages of the queue at that broker. The keeper is a router connected to the broker: all fallback
deliveries pass the keeper, in both directions, so the keeper knows whether messages are there. A keeper that has just
connected does not know, and assumes messages. While the address has takers, the keeper feeds the messages back to the
address over a link from the queue, and surveys the queue (`queue_survey.py`) until the queue is empty.

    holds ---- twice dry, nothing under way ----> does not hold
      ^                                               |
      +------- a delivery to or from the queue -------+

Under steady traffic a delivery is under way at every moment, though the queue is as good as empty. Then the keeper
**asks to hold on**: producers wait for the moment that a survey takes.
"""

from __future__ import annotations

from collections.abc import Callable

from router.fallback.queue_survey import QueueSurvey, QueueTraffic, SurveyResult
from router.forwarding.ends import Inlet, Taker
from router.forwarding.fallback import AnycastWithFallback
from router.timers import Timer, Timers
from wire.errors import AmqpError

LOOK_S = 0.05
HOLD_AGAIN_S = 5.0
MOST_HOLD_AGAIN_S = 60.0


class QueueShare:
    """One broker's share of a fallback queue, at the keeper of the share.

    ``holds``: the share may hold messages. ``asks_to_hold_on``: producers should send nothing now, so that the queue
    can be found empty. ``tell()`` is called when one of the two changed, and returns only when the announcement is on
    its way to the other routers. ``open_feed()`` returns a link from the queue, or None when a link cannot be made now.
    """

    def __init__(
        self,
        group: AnycastWithFallback,
        open_feed: Callable[[], Inlet | None],
        tell: Callable[[], None],
        timers: Timers,
        path_wait_s: float,
    ) -> None:
        self.holds = True
        self.asks_to_hold_on = False
        self.senders: dict[Taker, None] = {}
        self.feed: Inlet | None = None
        self.is_leaving = False
        self._group = group
        self._open_feed = open_feed
        self._tell = tell
        self._timers = timers
        self._path_wait_s = path_wait_s
        self._survey = QueueSurvey()
        self._sent = 0
        self._look_timer: Timer | None = None
        self._hold_until = 0.0
        self._hold_again_at = 0.0
        self._hold_again_s = HOLD_AGAIN_S

    @property
    def is_idle(self) -> bool:
        """True if the keeper has neither a link from the queue nor one to it at this share's broker."""
        return self.feed is None and not self.senders

    # Towards the queue
    def add_sender(self, taker: Taker) -> None:
        """Count the unsettled deliveries of ``taker``, a new link to the queue, as under way from now on.

        Before each of its deliveries, ``taker`` calls `on_sending`.
        """
        self.senders[taker] = None

    def on_sending(self) -> None:
        """Count a delivery that is about to go to the queue, and announce that the share holds messages."""
        # The announcement that the queue holds a message leaves before the delivery goes to the broker, long before the
        # delivery's outcome. Announcement and outcome take the same connections in order, so an ingress that sees the
        # delivery accepted knows already that the queue holds a message.
        self._sent += 1
        self._hold()

    # From the queue
    def settle(self, *, is_taken: bool) -> None:
        """Open the link from the queue if the address has takers; else release the link's waiting deliveries.

        The released deliveries go back to the queue. If another router is going to keep this share, no link is opened,
        and the link is closed once none of its deliveries is unsettled.
        """
        if is_taken and not self.is_leaving:
            if self.feed is None:
                self._start_feed()
        elif self.feed is not None:
            self._group.give_back(self.feed)
            self._close_feed_when_idle()
        if self.feed is not None and self.holds:
            self._look_later()

    def _start_feed(self) -> None:
        self.feed = self._open_feed()
        if self.feed is not None:
            self._group.add_feed(self.feed, self)

    def _close_feed_when_idle(self) -> None:
        feed = self.feed
        if feed is None or not self.is_leaving:
            return
        if feed.unsettled_count:
            self._timers.after(LOOK_S, self._close_feed_when_idle)
        else:
            feed.on_left(True, None)

    def on_feeding(self) -> None:
        """Announce that the share holds messages; called when a delivery came from the queue, which may hold more."""
        self._hold()

    def on_lost(self, end: Inlet | Taker, error: AmqpError | None) -> bool:
        """Forget the link ``end``, which is gone; after an error, announce that the share holds messages.

        The deliveries of a link that ended with an error may be in the queue. Return False, with nothing done, if
        ``end`` is no link from or to the queue of this share.
        """
        if end is self.feed:
            self.feed = None
            self._survey.give_up()
        elif isinstance(end, Taker) and end in self.senders:
            del self.senders[end]
        else:
            return False
        if error is not None:
            self._hold()
        return True

    # State
    def _hold(self) -> None:
        if self.holds:
            return
        self.holds = True
        self._tell()
        self._look_later()

    def _let_go(self) -> None:
        self.holds = self.asks_to_hold_on = False
        self._hold_again_s = HOLD_AGAIN_S
        self._tell()

    def _ask_to_hold_on(self, asks: bool) -> None:
        now = self._timers.now
        if asks:
            self._hold_until = now + self._path_wait_s
        else:
            self._hold_again_at = now + self._hold_again_s
            self._hold_again_s = min(2 * self._hold_again_s, MOST_HOLD_AGAIN_S)
        self.asks_to_hold_on = asks
        self._tell()

    # Surveys
    def _look_later(self) -> None:
        if self._look_timer is None:
            self._look_timer = self._timers.after(LOOK_S, self._look)

    def _look(self) -> None:
        self._look_timer = None
        if not self.holds or self.feed is None:
            return
        if self.asks_to_hold_on and self._timers.now >= self._hold_until:
            self._ask_to_hold_on(False)
        if self._survey.is_asking:
            self.on_flow()
        else:
            self._ask()
        self._look_later()

    def _ask(self) -> None:
        feed = self.feed
        if feed is None or not feed.link.is_open or feed.link.credit <= 0 or feed.link.queued:
            return
        self._survey.ask(self._traffic())
        feed.hear_credit()
        feed.is_draining = True
        feed.link.request_drain(0)

    def on_flow(self) -> None:
        """End the survey's round if its drain of the link from the queue is answered, and act on the result.

        Called when the credit of the link from the queue may have changed. If the queue is known to be empty, the
        announcement of messages is withdrawn.
        """
        feed = self.feed
        if not self._survey.is_asking or feed is None or feed.link.credit > 0 or feed.link.queued:
            return
        feed.link.end_drain()
        feed.is_draining = False
        # The inlet's ``promised`` credit is above zero only if the broker gave back unused credit: deliveries that used
        # up the credit leave ``promised`` at zero, and so does this router when it takes back credit for want of
        # takers.
        finding = self._survey.answer(self._traffic(), is_dry=feed.promised > 0)
        feed.hear_credit()
        self._group.top_up(feed)
        self._conclude(finding)

    def _conclude(self, finding: SurveyResult) -> None:
        if finding is SurveyResult.EMPTY:
            self._let_go()
        elif finding is SurveyResult.QUIET:
            self._ask()
        elif finding is SurveyResult.BUSY and not self.asks_to_hold_on and self._timers.now >= self._hold_again_at:
            self._ask_to_hold_on(True)

    def _traffic(self) -> QueueTraffic:
        feed = self.feed
        assert feed is not None
        under_way = feed.unsettled_count + sum(unsettled_to(taker) for taker in self.senders)
        return QueueTraffic(feed.deliveries_in, self._sent, under_way)


def unsettled_to(taker: Taker) -> int:
    """Return the number of unsettled deliveries that ``taker`` sent and that may be in the queue.

    A delivery that is half sent on a stream is not in the queue, and does not count.
    """
    return taker.unsettled_count - (taker.is_stream and taker.is_moving)

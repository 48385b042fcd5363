"""Does one broker's share of a fallback hold messages, and who feeds the address from it?

The keeper does, a router that is connected to the broker: all that falls back to the broker passes it, in both
directions. So it knows: what it does not know, because it has just connected, counts as messages. While somebody takes
the address, it feeds it over a link from the queue, and surveys the queue (`router.survey`) until that is empty.

    holds ---- twice dry, nothing under way ----> does not hold
      ^                                               |
      +--- something is sent to it, or comes from it --+

Under steady traffic something is under way at every moment, though the queue is as good as empty. Then the keeper
**asks to hold on**: producers wait for the moment that it takes.
"""

from __future__ import annotations

from collections.abc import Callable

from router.forwarding.ends import Inlet, Taker
from router.forwarding.fallback import AnycastWithFallback
from router.survey import Finding, Survey, Traffic
from router.timers import Timer, Timers
from wire.errors import AmqpError

LOOK_S = 0.05
HOLD_AGAIN_S = 5.0
MOST_HOLD_AGAIN_S = 60.0


class Keeper:
    """``tell()`` is called when ``holds`` or ``asks_to_hold_on`` changed: it must be on its way to the other routers
    before it returns. ``open_feed()`` makes a link from the queue, or returns None when it cannot now.
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
        self._survey = Survey()
        self._sent = 0
        self._look_timer: Timer | None = None
        self._hold_until = 0.0
        self._hold_again_at = 0.0
        self._hold_again_s = HOLD_AGAIN_S

    @property
    def is_idle(self) -> bool:
        """It neither feeds nor sends."""
        return self.feed is None and not self.senders

    # Towards the queue
    def add_sender(self, taker: Taker) -> None:
        """``taker`` sends to the queue."""
        self.senders[taker] = None
        if taker.is_stream:
            # Begun long before its end, perhaps: the queue holds nothing of it until then.
            taker.on_finish = self._on_sending
        else:
            taker.on_start = self._on_sending

    def _on_sending(self) -> None:
        # Before the delivery goes to the broker, so long before its outcome: an ingress that sees it accepted has
        # heard that the queue holds something, since both pass the same connections, in this order.
        self._sent += 1
        self._hold()

    # From the queue
    def settle(self, *, is_taken: bool) -> None:
        """Feed while somebody takes; give back what was fetched for takers that are gone."""
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
        """Something came from the queue."""
        self._hold()

    def on_lost(self, end: Inlet | Taker, error: AmqpError | None) -> bool:
        """An end is gone; with an error, what was under way there may be in the queue. False: it was none of these."""
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

    # What is known
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
        """The queue's link has news: perhaps the answer."""
        feed = self.feed
        if not self._survey.is_asking or feed is None or feed.link.credit > 0 or feed.link.queued:
            return
        feed.link.end_drain()
        feed.is_draining = False
        # What was promised is used up by deliveries, and zero also when it was taken back for want of takers.
        finding = self._survey.answer(self._traffic(), is_dry=feed.promised > 0)
        feed.hear_credit()
        self._group.top_up(feed)
        self._conclude(finding)

    def _conclude(self, finding: Finding) -> None:
        if finding is Finding.EMPTY:
            self._let_go()
        elif finding is Finding.QUIET:
            self._ask()
        elif finding is Finding.BUSY and not self.asks_to_hold_on and self._timers.now >= self._hold_again_at:
            self._ask_to_hold_on(True)

    def _traffic(self) -> Traffic:
        feed = self.feed
        assert feed is not None
        under_way = feed.unsettled_count + sum(unsettled_to(taker) for taker in self.senders)
        return Traffic(feed.deliveries_in, self._sent, under_way)


def unsettled_to(taker: Taker) -> int:
    """Deliveries that the queue has or may have, and did not answer; a stream's that is half sent will be one."""
    return taker.unsettled_count - (taker.is_stream and taker.is_moving)

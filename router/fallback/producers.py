"""Decide whether the producers of an address send to its takers, or to the queue that the address falls back to.

Every ingress decides for itself. An ingress falls back while the address has no takers, and then until the queue is
empty according to the keepers (`announcements.py`): new messages go behind old ones. All fallback deliveries go over
the keeper, the one router that feeds a broker's part of the queue back, so that the keeper knows about them.
docs/decisions/0014 explains order, loops and limits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from addressing.routing_keys import fallback_keys
from router.fallback.announcements import ShareAnnouncements
from router.fallback.context import FallbackContext, FallbackServices
from router.fallback.queue_path import QueuePath
from router.forwarding.ends import Inlet, Taker
from wire.errors import AmqpError


class Fallback:
    """The fallback of one address at this router: sends its producers' deliveries to the takers or to the queue.

    A call of `settle` is due after every change of the address. ``tell(has_begun)`` is called with True if deliveries
    of producers here go to the queue, else False, and may get the same value again.
    """

    def __init__(
        self,
        backed: FallbackContext,
        ways: FallbackServices,
        keeping: ShareAnnouncements,
        tell: Callable[[bool], None],
    ) -> None:
        self.queue = backed.queue
        self.keeping = keeping
        self.way = QueuePath(backed, ways, keeping)
        self._backed = backed
        self._group = backed.group
        self._reach = ways.reach
        self._timers = ways.timers
        self._path_wait_s = ways.path_wait_s
        self._changed = ways.changed
        self._tell = tell
        self._holders: frozenset[str] = frozenset()
        self._doubt_until = 0.0
        self._has_given_up_queue = False
        self._has_given_up_takers = False
        self._was_taken = False

    def is_to_queue(self, taker: Taker) -> bool:
        return taker is self._group.fallback

    def settle(self) -> None:
        self.keeping.settle()
        self._note_holders()
        if self.way.find() or self.way.is_up:
            self._has_given_up_queue = False
        if self._has_taker or not self.way.exists:
            self._has_given_up_takers = False
        self._note_takers()
        falls_back = self._falls_back()
        self._group.fall_back(falls_back, falls_back and self._has_to_hold_on(), self.way.exists)
        self.way.settle(is_needed=falls_back and self._group.has_producer)
        self._report()

    # State
    def _note_holders(self) -> None:
        """Note the routers that announce messages in the queue.

        A router that went out of reach has not announced an empty queue, so the queue counts as holding messages for
        another ``path_wait_s``.
        """
        holders = self._reach.routing.routers_with(fallback_keys(self._backed.address)[0])
        if any(self._reach.routing.cost_to(router) is None for router in self._holders - holders):
            self._doubt_until = self._timers.now + self._path_wait_s
            self._timers.after(self._path_wait_s, partial(self._changed.add, self._backed.entry))
        self._holders = holders

    def _note_takers(self) -> None:
        was_taken, self._was_taken = self._was_taken, self._reach.is_taken(self._backed.entry)
        if was_taken and not self._was_taken:
            self._group.call_home()

    @property
    def _is_behind(self) -> bool:
        """True if the fallback queue may hold messages, so that new messages have to go behind them."""
        return bool(self._holders) or self.keeping.holds or self._timers.now < self._doubt_until

    @property
    def _has_taker(self) -> bool:
        return any(not taker.is_closing for taker in self._group.takers)

    # Deciding
    def _falls_back(self) -> bool:
        if self._has_given_up_queue and self._has_taker:
            return False
        return self._is_behind or self._has_given_up_takers or not self._reach.is_taken(self._backed.entry)

    def _has_to_hold_on(self) -> bool:
        """True if all routers that announce messages in the queue, this one included, ask producers to hold on."""
        asking = self._reach.routing.routers_with(fallback_keys(self._backed.address)[1])
        if self.keeping.holds and not self.keeping.asks_to_hold_on:
            return False
        return (bool(asking) or self.keeping.holds) and self._holders <= asking

    def on_no_taker_in_time(self) -> None:
        """Switch the producers, which had no taker for ``hold_s``, from takers to the queue, or back to takers.

        Without a path that way either, do nothing: the group itself then releases the deliveries that wait.
        """
        if not self._group.has_producer:
            return
        if self._group.is_falling_back:
            is_changed = self._has_given_up_queue = self._has_taker
        else:
            is_changed = self._has_given_up_takers = self.way.exists
        if is_changed:
            self._changed.add(self._backed.entry)

    # Reporting
    def on_lost(self, end: Inlet | Taker, error: AmqpError | None) -> None:
        # Both the shares that this router keeps and the path of its own producers are told of the lost link: if this
        # router is the keeper, the producers' link to the queue is a link of the share, too.
        self.keeping.on_lost(end, error)
        self.way.on_lost(end, error)

    def _report(self) -> None:
        """Report, for the log, whether deliveries of producers here go to the queue.

        When the last producer leaves, no end of the fallback is reported: producers may attach for single messages.
        """
        if not self._group.is_falling_back:
            self._tell(False)
        elif self._group.has_producer and self.way.exists:
            self._tell(True)

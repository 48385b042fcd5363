"""An anycast address with a fallback queue: its producers send to the address's takers, or to the queue.

While the group falls back, producers send to ``fallback`` alone, a link or circuit towards the queue. To keep order, an
inlet changes between takers and queue only when none of its deliveries is outstanding. Deliveries that the last taker
did not get are recalled first (`router.forwarding.pending_returns`). When to fall back is decided in
`router.fallback.producers`.
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from router.forwarding.anycast cimport Anycast
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.copies cimport Copies
from router.forwarding.pending_returns cimport PendingReturns
from router.forwarding.move cimport Move
from recording.records cimport Recorder

from dataclasses import replace

# How long deliveries from a circuit wait for a taker here before they go back to their ingress, and so to the fallback
# queue: longer than the other routers need to hear that the last taker left.
_GIVE_BACK_S = 0.05


cdef class AnycastWithFallback(Anycast):
    """The group of an anycast address with a fallback queue.

    When producers had no taker for ``hold_s``, the group reports that by an action, and the owner changes between
    takers and queue; if the other of the two has no path, waiting deliveries are released. ``feeds``: links from the
    queue, whose messages go to the takers. Always: ``behind`` has the inlets whose outstanding deliveries, if any, went
    to the fallback queue.
    """

    def __init__(
        self, address, int phase, timers, settings, owner, actions, Copies copies, Recorder recorder, **options
    ):  # fmt: skip
        super().__init__(address, phase, timers, settings, owner, actions, copies, recorder, **options)
        self.feeds = {}
        self.behind = {}

    # Ends
    cdef bint has_direct(self) noexcept:
        """True if the address has takers other than the fallback queue, here or over a circuit."""
        cdef Taker taker
        for taker in self.takers:
            if not taker.is_closing_now:
                return True
        return False

    cdef bint has_taker(self) noexcept:
        """True if producers here have a taker: while falling back, the one to the queue, else any of the address.

        The taker to the queue counts once it has granted credit.
        """
        if self.is_falling_back:
            return self.fallback is not None and self.fallback.had_credit and not self.fallback.is_closing_now
        return self.has_direct()

    cdef bint has_taker_for(self, Inlet inlet):
        if inlet.is_circuit:
            return self.has_local()
        return self.has_direct() if inlet in self.feeds else self.has_taker()

    @property
    def has_producer(self):
        cdef Inlet inlet
        for inlet in self.inlets:
            if not inlet.is_circuit and inlet not in self.feeds:
                return True
        return False

    # Methods by which `router.fallback` tells the group where deliveries go
    def fall_back(self, bint is_falling_back, bint is_holding, bint has_queue):
        """Send deliveries of producers here to the fallback queue if ``is_falling_back``, else to takers.

        ``is_holding``: while falling back, the deliveries wait until the next call, and do not go to the queue.
        ``has_queue``: the queue is in reach, so that deliveries without a taker need not be released.
        """
        self.has_queue = has_queue
        if (is_falling_back, is_holding) == (self.is_falling_back, self.is_holding):
            return
        self.is_falling_back, self.is_holding = is_falling_back, is_holding
        self._look_again()

    def set_fallback(self, Taker taker, bint is_closing):
        """Set ``taker``, a link or circuit, as the one that leads to the fallback queue.

        ``is_closing``: the taker gets no more deliveries, and ends once nothing is outstanding on it.
        """
        if taker is self.fallback and is_closing == taker.is_closing_now:
            return
        self.fallback = taker
        taker.is_closing = is_closing
        self._look_again()

    def _look_again(self):
        cdef Inlet inlet
        self._mind_despair()
        self.kick()
        for inlet in list(self.inlets):
            self.top_up_now(inlet)

    def call_home(self):
        """Recall deliveries of producers here that are on their way to the last taker, which left.

        An inlet's later deliveries go to the queue or to a new taker only when the recalled ones are back.
        """
        cdef Inlet inlet
        if self.pending_returns is None:
            self.pending_returns = PendingReturns(self.timers, self.settings.path_wait_s, self._on_home)
        for inlet in list(self.inlets):
            if not inlet.is_circuit and inlet not in self.behind:
                self.pending_returns.call(inlet)

    cdef bint is_called_home(self, Inlet inlet) except -1:
        cdef PendingReturns pending_returns = self.pending_returns
        return pending_returns is not None and pending_returns.has(inlet)

    def add_feed(self, Inlet inlet, feeder):
        """Add ``inlet``, a link from the fallback queue; ``feeder`` is told of deliveries and flows on that link."""
        self.feeds[inlet] = feeder
        self.add_inlet(inlet)

    def give_back(self, Inlet inlet):
        """Release all waiting deliveries of the inlet, since the address has no takers, and revoke the inlet's credit.

        A queue puts the released messages back in their place; an ingress sends them to its fallback queue.
        """
        inlet.revoke()
        self.exclude(inlet)
        self.waiting.discard(inlet)
        self.released += inlet.release_held()
        if self.retries and not self.is_called_home(inlet):
            for move in [move for move in self.retries if (<Move>move).inlet is inlet]:
                self._on_late(move)

    # Methods that measure the time in which producers have no taker.
    def _mind_despair(self):
        if not self.has_taker():
            self._despair_later()
            return
        self.is_dead = False
        if self.hold_timer is not None:
            self.hold_timer.cancel()
            self.hold_timer = None

    def _despair_later(self):
        cdef Inlet inlet
        for inlet in self.inlets:
            if not self.has_taker_for(inlet):
                inlet.revoke()
                self.exclude(inlet)
        if self.hold_timer is None and not self.has_taker():
            self.hold_timer = self.timers.after(self.hold_s, self.give_up)

    def give_up(self):
        self.hold_timer = None
        if self.has_taker():
            return
        self.actions.on_no_taker_in_time(self)
        if self.has_producer and not (self.has_direct() if self.is_falling_back else self.has_queue):
            super().give_up()

    def add_inlet(self, Inlet inlet):
        super().add_inlet(inlet)
        self._mind_despair()

    def forget_inlet(self, Inlet inlet):
        self.feeds.pop(inlet, None)
        self.behind.pop(inlet, None)
        if self.pending_returns is not None:
            self.pending_returns.forget(inlet)
        super().forget_inlet(inlet)

    def add_taker(self, Taker taker):
        self.gives_back = self.gives_back and not taker.is_near_now()
        super().add_taker(taker)
        self._mind_despair()

    def _give_back(self):
        super()._give_back()
        self.gives_back = not self.has_local()

    def on_taker_left(self, Taker taker, closed, error):
        if taker is self.fallback:
            self.fallback = None
            self.deliveries_out_before += taker.deliveries_out
        super().on_taker_left(taker, closed, error)
        self._mind_despair()
        if not self.has_local():
            self.timers.after(_GIVE_BACK_S, self._give_back)

    # Credit
    cdef int credit_for(self, Inlet inlet) except? -2147483648:
        cdef Inlet feed
        cdef int far = self.promised_to_circuits, near = 0, producers = self.promised_to_producers
        for feed, feeder in self.feeds.items():
            producers -= feed.promised_count
            if feeder.holds:
                near += feed.promised_count
        if not self.is_falling_back:
            near += producers
        if self.is_falling_back and inlet not in self.feeds and not inlet.is_circuit:
            return 0 if self.is_holding else self.fallback.credit_count - producers
        if self.is_strict:
            return self.nearest_credit(inlet) - far - near
        if inlet.is_circuit:
            return self.credit_of_locals - far - max(0, near - self.credit_of_circuits)
        return self.credit_of_locals + self.credit_of_circuits - far - near

    cdef int top_up_now(self, Inlet inlet) except -1:
        if self.leads_nowhere(inlet) or not self.has_taker_for(inlet):
            return self.exclude(inlet)
        if not inlet.is_circuit and inlet in self.feeds and not self.feeds[inlet].holds:
            # The fallback queue is known to be empty: one credit on the link from the queue suffices to learn of a new
            # message.
            return inlet.top_up(1) if self._lacks_float(inlet) else 0
        return self.sharing.top_up(inlet, self.credit_for(inlet))

    cdef bint _lacks_float(self, Inlet inlet) noexcept:
        return inlet.link.is_open_now() and not inlet.is_draining and inlet.needs_float()

    cdef int on_credit(self, Taker taker) except -1:
        if taker is self.fallback:
            self._mind_despair()
        Anycast.on_credit(self, taker)
        return self.end_exclusion() if self.excluded_at != self._taker_state() else 0

    cdef int exclude(self, Inlet inlet) except -1:
        cdef int state = self._taker_state()
        self.excluded_at = state if not self.has_excluded or state == self.excluded_at else -1
        return Anycast.exclude(self, inlet)

    cdef int _taker_state(self) noexcept:
        """Return a number, not below 0, on which alone `has_taker_for` depends, whatever inlet is asked about."""
        return self.has_direct() | self.has_taker() << 1 | self.has_local() << 2 | self.is_falling_back << 3

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        if inlet in self.feeds:
            self.feeds[inlet].on_flow()
        return Anycast.on_sender_flow(self, inlet)

    # Movement
    cdef bint has_ready_taker(self) noexcept:
        return (self.fallback is not None and self.fallback.can_take_now()) or Anycast.has_ready_taker(self)

    cdef bint may_pass_on(self) noexcept:
        # Producers that wait here may go on without a taker, by the state of the queue. With the look at them left out,
        # a producer's deliveries were passed on out of order in 2 of 36 runs of `live/test_fallback_rows.py`.
        return True

    cdef int pump(self, Inlet inlet) except -1:
        if inlet.is_circuit:
            if self.gives_back:
                self.give_back(inlet)
        elif inlet in self.feeds:
            if inlet.head_now() is not NULL:
                self.feeds[inlet].on_feeding()
            if not self.has_direct():
                self.give_back(inlet)
        return Anycast.pump(self, inlet)

    cdef Taker choose(self, Inlet inlet, bint is_large, size_t size):
        cdef Taker taker
        if self.is_called_home(inlet):
            return None
        if inlet.is_circuit or inlet in self.feeds:
            return Anycast.choose(self, inlet, is_large, size)
        if not self.may_change(inlet):
            return None
        if not self.is_falling_back:
            return Anycast.choose(self, inlet, is_large, size)
        taker = self.fallback_now(size)
        if taker is None:
            return None
        if not taker.link.is_writable_now():
            taker.link.endpoint.wait(inlet)
            return None
        return self.way_to(taker, inlet, is_large, size)

    cdef bint may_change(self, Inlet inlet) except -1:
        """True if the inlet's deliveries may go where the group sends now: to takers, or to the fallback queue.

        If the inlet's deliveries went to the other of the two before, they change now, unless some are unsettled.
        """
        if (inlet in self.behind) == self.is_falling_back:
            return True
        if inlet.unsettled_count:
            return False
        if self.is_falling_back:
            self.behind[inlet] = None
        else:
            del self.behind[inlet]
        return True

    cdef Taker fallback_now(self, size_t size):
        """Return the taker to the fallback queue if it has credit and accepts a message of ``size`` bytes, else None.

        Return None also while deliveries are held back from the queue (``is_holding``).
        """
        cdef Taker taker = self.fallback
        if self.is_holding or taker is None or not taker.can_take_now():
            return None
        return None if self._is_too_small(taker, size) else taker

    cdef bint _is_too_small(self, Taker taker, size_t size) noexcept:
        return taker.max_message_bytes and size > taker.max_message_bytes

    cdef Taker _who_is_too_small(self, Inlet inlet, size_t size):
        if self.is_falling_back and not inlet.is_circuit and self.fallback is not None:
            return self.fallback if self._is_too_small(self.fallback, size) else None
        return Anycast._who_is_too_small(self, inlet, size)

    cdef bint retransmits(self, Inlet inlet) except -1:
        # A delivery from the fallback queue is not sent again from here: the queue counts attempts itself, and limits
        # them.
        return inlet not in self.feeds and Anycast.retransmits(self, inlet)

    # Methods about deliveries that takers gave back. These are gathered, and offered again in order of arrival once the
    # input was handled: the engine reports many outcomes at once in no order.
    cdef bint retry(self, Carrier carrier) except -1:
        cdef Move move = <Move>carrier
        if self.is_dead or move.copy is None:
            return False
        if move.taker is not None and not self.is_called_home(move.inlet) and not self.has_another_for(move):
            return False
        self.hold_retry(move)
        self._gather()
        return True

    cdef int on_returned(self, Inlet inlet) except -1:
        if self.is_called_home(inlet):
            self._gather()
        return Anycast.on_returned(self, inlet)

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        if self.is_called_home(inlet):
            self._gather()
        return Anycast.on_returned_unread(self, inlet)

    cdef int _gather(self) except -1:
        if self.gathering is None:
            self.gathering = self.timers.after(0.0, self._offer_in_order)
        return 0

    def _offer_in_order(self):
        cdef Carrier carrier
        cdef dict in_order = {}
        self.gathering = None
        for inlet in dict.fromkeys([(<Move>each).inlet for each in self.retries or ()]):
            found = []
            carrier = (<Inlet>inlet).newest if inlet is not None else None
            while carrier is not None:
                if carrier in self.retries:
                    found.append(carrier)
                carrier = carrier.older_in
            in_order.update(dict.fromkeys(reversed(found)))
        self.retries = in_order
        if self.pending_returns is not None and self.pending_returns.look():
            self._on_home()
        else:
            self.kick()

    def _on_home(self):
        """Let waiting deliveries go on, since an inlet's recalled deliveries are back, or were waited for long enough.

        If no taker came meanwhile, deliveries from the fallback queue go back to the queue.
        """
        cdef Inlet inlet
        if not self.has_direct():
            for inlet in list(self.feeds):
                self.give_back(inlet)
        self._look_again()

    cdef list retries_now(self):
        if self.gathering is not None:
            return []
        return [move for move in self.retries if not self.is_called_home((<Move>move).inlet)]

    cdef bint is_for_fallback(self, Move move):
        return self.is_falling_back and not move.inlet.is_circuit and move.inlet not in self.feeds

    cdef Taker another_for(self, Move move):
        cdef Taker taker
        if not self.is_for_fallback(move):
            return Anycast.another_for(self, move)
        taker = self.fallback_now(PyBytes_GET_SIZE(move.copy))
        return None if taker is None or (move.tried is not None and taker in move.tried) else taker

    cdef bint has_another_for(self, Move move):
        if not self.is_for_fallback(move):
            return Anycast.has_another_for(self, move)
        return self.fallback is None or move.tried is None or self.fallback not in move.tried

    def snapshot(self):
        return replace(super().snapshot(), is_falling_back=self.is_falling_back)

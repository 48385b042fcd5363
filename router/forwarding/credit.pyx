"""Share the credit of an address's takers (outgoing links) among its inlets (incoming links).

Each inlet gets a float, one credit for each producer that it stands for, and the rest goes by recent use. An inlet
that sends gets credit up to its limit as far as the takers' credit goes. Scarce credit is shared among the inlets in
use, where a circuit counts as many times as there are producers behind it. While other inlets are short of credit, the
credit of an idle inlet is reduced to one, or two where the credit suffices, within ``PERIOD_S``.

Where the limits of many inlets together exceed the takers' credit, an inlet starts small: it gets no more than its
share of half of the credit, or twice its recent deliveries. So an inlet that sends now and then keeps what it has: the
flow that renews its credit goes out with the settlement of its delivery, and no other flow is needed.

No step looks at all inlets. Fresh credit of the takers goes to the inlets that were short of credit, the longest
waiting first, or if there are none, to inlets that have a small share. A period ends with a look at the inlets that
were used in it or still hold more than their float.
"""

PERIOD_S = 0.05
# Time without a new delivery after which an inlet counts as idle: a period, but for the rounding of times.
cdef double _IDLE_S = 0.9 * PERIOD_S

cdef enum:
    # The least credit of an inlet for each producer that it stands for: a sender without credit has no way in AMQP to
    # say that it has a message.
    FLOAT = 1
    # The credit of an inlet that sends now and then, for each producer, where credit suffices: a delivery then leaves
    # the sender one credit, and needs no flow before its settlement.
    KEPT = 2
    # With more inlets than these in a group whose limits together exceed the takers' credit, each inlet starts small.
    FEW = 8
    # Credit suffices if the takers have so much for each inlet: twice what the inlets keep is left for the others if
    # some inlet is short of credit, and nothing need be left if none is.
    LEAST_FOR_KEPT = 2
    LEAST_BESIDE_SHORT = 8
    # Fresh credit of the takers is offered on until it is no use to so many inlets in a row.
    MOST_REFUSED = 8


cdef int room_of(Inlet inlet) noexcept:
    """Return how many more deliveries the limit of the inlet permits; below zero when the inlet is past the limit.

    Unsettled deliveries of an inlet whose sender is a router do not count here, since that router counts them towards
    the limits of its producers.
    """
    cdef int unsettled = 0 if inlet.is_from_node() else inlet.unsettled_count
    return inlet.limit_now() - inlet.promised_count - unsettled


cdef class ShortInlets:
    """Inlets that would use more credit than they got when they were last topped up, the longest waiting first.

    A linked list through the inlets themselves. Always: an inlet is in one list at most, its ``short_in``.
    """

    def __len__(self):
        return self.count

    cdef int append(self, Inlet inlet) except -1:
        """Put the inlet at the end, and so take it out of the list that it was in."""
        if inlet.short_in is not None:
            (<ShortInlets>inlet.short_in).remove(inlet)
        inlet.short_in = self
        inlet.short_before = self.last
        if self.last is not None:
            self.last.short_behind = inlet
        else:
            self.first = inlet
        self.last = inlet
        self.count += 1
        return 0

    cdef int remove(self, Inlet inlet) except -1:
        """Take the inlet out of the list; no effect if it is not in the list."""
        if inlet.short_in is not self:
            return 0
        if inlet.short_before is not None:
            inlet.short_before.short_behind = inlet.short_behind
        else:
            self.first = inlet.short_behind
        if inlet.short_behind is not None:
            inlet.short_behind.short_before = inlet.short_before
        else:
            self.last = inlet.short_before
        inlet.short_in = inlet.short_before = inlet.short_behind = None
        self.count -= 1
        return 0


cdef class CreditSharing:
    """The sharing of the credit of a group's takers among the group's inlets.

    ``again(inlet)`` is called to top up an inlet that was short of credit: at the end of each ``PERIOD_S``, and by
    `offer`. Always: ``watched`` has each inlet that holds more than its float, or was used in the last period.
    """

    def __init__(self, dict inlets, again, timers):
        self.inlets = inlets
        self.again = again
        self.timers = timers
        self.short, self.small = ShortInlets(), ShortInlets()
        self.watched = {}

    cdef int behind(self, Taker taker) noexcept:
        """Return how many producers, in use at the last count (`on_period`), may send to ``taker``, a circuit.

        Producers behind circuits that arrive here count only if ``taker`` leads to an edge router.
        """
        return self.in_use if taker.edge else self.producers_in_use

    def forget(self, Inlet inlet):
        self.short.remove(inlet)
        self.small.remove(inlet)
        self.watched.pop(inlet, None)

    cdef int watch(self, Inlet inlet) except -1:
        """Look at the inlet at the end of the period, since it is in use."""
        self.watched[inlet] = None
        return 0

    cdef int offer(self) except -1:
        """Top up inlets that were short of credit, the longest waiting first, since takers may have credit again.

        Inlets that are not short want nothing more, or are topped up once they send or one of their deliveries is
        settled. Stop after ``MOST_REFUSED`` inlets in a row that got nothing, so that the work is in proportion to the
        grants: the others are first in the next call, or are topped up at the end of the period. If no inlet is short,
        the next inlets are those with a small share. All shares are alike, so one that does not grow is enough to stop.
        """
        if self.short.count == 0:
            return self._offer_to(self.small, 1)
        return self._offer_to(self.short, MOST_REFUSED)

    cdef int _offer_to(self, ShortInlets inlets, int most_refused) except -1:
        cdef Inlet inlet
        cdef int promised, refused = 0, count = inlets.count
        while count > 0 and refused < most_refused and inlets.first is not None:
            count -= 1
            inlet = inlets.first
            inlets.remove(inlet)
            promised = inlet.promised_count
            self.again(inlet)
            refused = 0 if inlet.promised_count > promised else refused + 1
        return 0

    cdef int top_up(self, Inlet inlet, int room) except -1:
        """Grant the inlet credit if there is enough to be worth a flow frame; else a float if the inlet needs one.

        ``room``: deliveries that the takers would take from this inlet beyond all promised credit.
        """
        cdef int wanted, useful, count
        if inlet.is_draining or not inlet.link.is_open_now():
            return 0
        if inlet.idle_at == <long long>inlet.deliveries_in and not inlet.needs_float():
            return 0
        wanted = useful = room_of(inlet)
        if len(self.inlets) > FEW:
            useful = min(useful, self._most(inlet, room) - inlet.promised_count)
            if useful < wanted and inlet.short_in is None:
                self.small.append(inlet)
        count = min(useful, room)
        if room < useful:
            count = self._ration(inlet, count)
        # A grant at least doubles the promised credit of the inlet, or is not made: a flow frame for each delivery
        # would double the number of frames.
        if count <= 0 or count < inlet.promised_count:
            if wanted < 0 or not inlet.needs_float():
                return 0
            count = FLOAT * inlet.weight
        self.watched[inlet] = None
        return inlet.top_up(count)

    cdef int _most(self, Inlet inlet, int room) except? -1:
        """Return how much credit the inlet can use now: its limit if the takers' credit suffices for all inlets.

        Else the share of the inlet, or twice its recent deliveries.
        """
        cdef int sharers = len(self.inlets), limit = inlet.limit_now(), most
        self.credit = room + inlet.group.promised_to_producers + inlet.group.promised_to_circuits
        if self.credit // sharers >= limit:
            return limit
        most = self._kept()
        if self.short.count == 0:
            most = max(most, self.credit // (2 * sharers))
        return max(most * inlet.weight, 2 * inlet.recent_count(self.timers.now))

    cdef int _kept(self) noexcept:
        """Return how much credit an idle inlet keeps for each of its producers."""
        cdef int least = LEAST_BESIDE_SHORT if self.short.count else LEAST_FOR_KEPT
        if len(self.inlets) <= FEW:
            return FLOAT
        return KEPT if self.credit >= least * <int>len(self.inlets) else FLOAT

    cdef int _ration(self, Inlet inlet, int count) except? -1:
        cdef int sharers = len(self.inlets)
        if inlet.short_in is not self.short:
            self.short.append(inlet)
        if sharers <= 1:
            return count
        if self.timer is None:
            self.timer = self.timers.after(PERIOD_S, self.on_period)
        return 0 if count <= 0 else max(1, min(count, count * inlet.weight // (self.in_use or sharers)))

    def on_period(self):
        """Reduce the credit of each inlet that was idle for a period; top up the inlets that were short of credit."""
        cdef Inlet inlet
        cdef int in_use = 0, producers = 0, count, kept = self._kept()
        cdef double now = self.timers.now
        self.timer = None
        watched, self.watched = self.watched, {}
        for inlet in watched:
            if inlet.seen_at != <long long>inlet.deliveries_in:
                inlet.seen_at, inlet.seen_s = inlet.deliveries_in, now
            if now < inlet.seen_s + _IDLE_S or inlet.has_queued():
                in_use += inlet.weight
                producers += 0 if inlet.is_circuit else inlet.weight
                self.watched[inlet] = None
            elif inlet.promised_count >= FLOAT:
                if inlet.is_draining or not inlet.link.is_open_now():
                    self.watched[inlet] = None
                    continue
                inlet.idle_at = inlet.deliveries_in
                if inlet.promised_count > kept:
                    inlet.reduce(kept)
                if inlet.promised_count > FLOAT:
                    self.watched[inlet] = None  # the takers' credit may suffice for less later
        self.in_use = max(in_use, 1)
        self.producers_in_use = producers
        count = self.short.count
        while count > 0 and self.short.first is not None:
            count -= 1
            inlet = self.short.first
            self.short.remove(inlet)
            self.again(inlet)

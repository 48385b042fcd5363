"""Share the credit of an address's takers (outgoing links) among its inlets (incoming links).

Each inlet gets a float, one credit for each producer that it stands for, and the rest goes by recent use. An inlet
that sends gets credit up to its limit as far as the takers' credit goes. Scarce credit is shared among the inlets in
use, where a circuit counts as many times as there are producers behind it. While other inlets are short of credit, the
credit of an idle inlet is reduced to one within ``PERIOD_S``.
"""

PERIOD_S = 0.05
# Time without a new delivery after which an inlet counts as idle: a period, but for the rounding of times.
cdef double _IDLE_S = 0.9 * PERIOD_S

cdef enum:
    # The least credit of an inlet for each producer that it stands for: a sender without credit has no way in AMQP to
    # say that it has a message.
    FLOAT = 1


cdef int room_of(Inlet inlet) noexcept:
    """Return how many more deliveries the limit of the inlet permits; below zero when the inlet is past the limit.

    Unsettled deliveries of an inlet whose sender is a router do not count here, since that router counts them towards
    the limits of its producers.
    """
    cdef int unsettled = 0 if inlet.is_from_node() else inlet.unsettled_count
    return inlet.limit_now() - inlet.promised_count - unsettled


cdef class CreditSharing:
    """The sharing of the credit of a group's takers among the group's inlets.

    ``again(inlet)`` is called at the end of each ``PERIOD_S`` for each inlet that was short of credit, to top it up.
    """

    def __init__(self, dict inlets, again, timers):
        self.inlets = inlets
        self.again = again
        self.timers = timers
        self.hungry = {}

    cdef int behind(self, Taker taker) noexcept:
        """Return how many producers, in use at the last count (`on_period`), may send to ``taker``, a circuit.

        Producers behind circuits that arrive here count only if ``taker`` leads to an edge router.
        """
        return self.in_use if taker.edge else self.producers_in_use

    def forget(self, Inlet inlet):
        self.hungry.pop(inlet, None)

    cdef int top_up(self, Inlet inlet, int room) except -1:
        """Grant the inlet credit if there is enough to be worth a flow frame; else a float if the inlet needs one.

        ``room``: deliveries that the takers would take from this inlet beyond all promised credit.
        """
        cdef int wanted, count
        if inlet.is_draining or not inlet.link.is_open_now():
            return 0
        if inlet.idle_at == <long long>inlet.deliveries_in and not inlet.needs_float():
            return 0
        wanted = room_of(inlet)
        count = min(wanted, room)
        if room < wanted:
            count = self._ration(inlet, count)
        # A grant at least doubles the promised credit of the inlet, or is not made: a flow frame for each delivery
        # would double the number of frames.
        if count > 0 and count >= inlet.promised_count:
            return inlet.top_up(count)
        if wanted >= 0 and inlet.needs_float():
            return inlet.top_up(FLOAT * inlet.weight)
        return 0

    cdef int _ration(self, Inlet inlet, int count) except? -1:
        cdef int sharers = len(self.inlets)
        if sharers <= 1:
            return count
        self.hungry[inlet] = None
        if self.timer is None:
            self.timer = self.timers.after(PERIOD_S, self.on_period)
        return 0 if count <= 0 else max(1, min(count, count * inlet.weight // (self.in_use or sharers)))

    def on_period(self):
        """Reduce the credit of each inlet that was idle for a period to one; top up the inlets that were short of credit.
        """
        cdef Inlet inlet
        cdef bint was_used
        cdef int in_use = 0, producers = 0
        cdef double now = self.timers.now
        self.timer = None
        for inlet in self.inlets:
            if inlet.seen_at != <long long>inlet.deliveries_in:
                inlet.seen_at, inlet.seen_s = inlet.deliveries_in, now
            was_used = now < inlet.seen_s + _IDLE_S or inlet.has_queued()
            if was_used:
                in_use += inlet.weight
                producers += 0 if inlet.is_circuit else inlet.weight
            if not was_used and inlet.promised_count >= FLOAT and inlet.link.is_open_now() and not inlet.is_draining:
                inlet.idle_at = inlet.deliveries_in
                inlet.reduce(FLOAT)
        self.in_use = max(in_use, 1)
        self.producers_in_use = producers
        hungry, self.hungry = self.hungry, {}
        for inlet in hungry:
            self.again(inlet)

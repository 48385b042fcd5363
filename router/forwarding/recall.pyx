"""Recall deliveries: ask an egress for deliveries back that wait there for consumers without credit, when a taker at
another egress would take them.

A circuit has a float of credit even if no consumer has any, so a delivery may end up waiting at such an egress. The
ingress sees that the circuit does not move, and recalls the circuit's unsettled deliveries by a sender's disposition
RELEASED, unsettled, which no client has a use for. The egress gives back the deliveries that it has not written to a
consumer, and grants this ingress no credit until a consumer has credit. A recall of a delivery that was written to a
consumer is ignored. Decision 0021.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport LEFT_WAY, Carrier, Taker
from router.forwarding.move cimport Move
from wire.proton cimport RELEASED_STATE, pn


cdef class Recalls:
    """The recalls of one anycast group, which looks at its circuits every ``patience_s``.

    If a circuit with unsettled deliveries made no progress since the last look, and a taker that does not lead to the
    same egress has credit, the circuit's deliveries are recalled. ``is_strict`` (distribution closest): only if that
    taker is no further away.
    """

    def __init__(self, AddressGroup group, timers, double patience_s, bint is_strict):
        self.group = group
        self.is_strict = is_strict
        self.timers = timers
        self.patience_s = patience_s
        self.seen = {}

    cdef int watch(self) except -1:
        """Start the timer of the next look at the circuits, unless the timer runs.

        Called when a circuit may have got a delivery, or another taker credit.
        """
        if self.timer is None:
            self.timer = self.timers.after(self.patience_s, self._look)
        return 0

    def _look(self):
        cdef Taker taker
        seen, self.seen = self.seen, {}
        self.timer = None
        if len(self.group.takers) < 2:
            return
        for taker in (*self.group.takers, *(self.group.streams or ())):
            if taker.cost and taker.unsettled_count and (not taker.is_closing_now or taker.way == LEFT_WAY):
                self.seen[taker] = (taker.last_tag, taker.unsettled_count, taker.credit_count)
        for taker, mark in self.seen.items():
            if seen.get(taker) == mark:
                self._recall(taker)
        if self.seen:
            self.watch()

    cdef int _recall(self, Taker taker) except -1:
        cdef Carrier carrier = taker.newest
        cdef Move move
        cdef list others = self._others_than(taker)
        while carrier is not None and others:
            if isinstance(carrier, Move):
                move = <Move>carrier
                if move.may_be_recalled() and _is_wanted(move, others):
                    ask_back(move)
            carrier = carrier.older_out
        return 0

    cdef list _others_than(self, Taker taker):
        """Return the writable takers with credit that do not lead to the egress of ``taker``.

        Another taker whose deliveries make no progress is included, since its consumer may settle in batches.
        """
        cdef Taker other
        cdef list others = []
        for other in self.group.takers:
            if other.can_take_now() and other.egress != taker.egress and other.link.is_writable_now():
                if not self.is_strict or other.cost <= taker.cost:
                    others.append(other)
        return others


cdef int ask_back(Move move) except -1:
    pn.delivery_update(move.outgoing, RELEASED_STATE)
    return move.taker.link.endpoint.mark()


cdef bint _is_wanted(Move move, list others) except -1:
    """True if one of the takers ``others`` may take the delivery of ``move`` once it is recalled.

    Without a copy here, the delivery goes back to its producer, so a taker has to be likely to have credit then.
    """
    cdef Taker other
    for other in others:
        # A circuit with one credit, perhaps only the float, and with unsettled deliveries is no likely taker: its
        # consumers may be busy.
        is_likely = other.cost == 0 or other.credit_count > 1 or other.unsettled_count == 0
        if (is_likely or move.copies is not None) and move.suits(other):
            return True
    return False

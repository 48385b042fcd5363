"""Recall deliveries that wait at an egress whose consumers have no credit, when another taker would take them.

The float of a circuit may attract a delivery to such an egress. The ingress sees that the circuit does not move, and
recalls the outstanding deliveries: a sender's disposition RELEASED, unsettled, which no client has a use for. An
egress gives back the deliveries it has not written, and grants this ingress nothing until a consumer has credit;
about written deliveries the egress says nothing. Decision 0021.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport LEFT_WAY, Carrier, Taker
from router.forwarding.move cimport Move
from wire.proton cimport RELEASED_STATE, pn


cdef class Recalls:
    """The recalls of one group: look at its circuits every ``patience_s`` while any has outstanding deliveries.

    ``is_strict``: no delivery goes to a taker further away than another that is there (closest).
    """

    def __init__(self, AddressGroup group, timers, double patience_s, bint is_strict):
        self.group = group
        self.is_strict = is_strict
        self.timers = timers
        self.patience_s = patience_s
        self.seen = {}

    cdef int watch(self) except -1:
        """A circuit may have got a delivery, or another taker credit."""
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
        """Return writable takers with credit at other egresses, even stuck ones, which may settle in batches."""
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
    """True if another taker may want the delivery: without a copy only if likely, since the producer hears of it."""
    cdef Taker other
    for other in others:
        # A circuit's only credit may be the float of consumers that are busy.
        is_likely = other.cost == 0 or other.credit_count > 1 or other.unsettled_count == 0
        if (is_likely or move.copies is not None) and move.suits(other):
            return True
    return False

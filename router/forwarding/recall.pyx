"""A delivery waits behind an egress whose consumers want nothing, and another taker would have it: who gets it back?

A circuit's float may lure it there. Its ingress sees that the circuit does not move, and recalls what is outstanding on
it: a disposition RELEASED of the sender's, unsettled, which no client has a use for. An egress answers RELEASED if it did
not write the delivery, and grants that ingress nothing until a consumer has credit; else it says nothing. Decision 0021.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Carrier, Taker
from router.forwarding.move cimport Move
from wire.proton cimport RELEASED_STATE, pn

cdef enum:
    NONE
    POSSIBLE
    LIKELY


cdef class Recalls:
    """Of one group: looks at its circuits every ``patience_s`` as long as one of them has something outstanding."""

    def __init__(self, AddressGroup group, timers, double patience_s):
        self.group = group
        self.timers = timers
        self.patience_s = patience_s
        self.seen = {}

    cdef int watch(self) except -1:
        """One of the circuits may have got something, or another taker credit."""
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
            if taker.cost == 0 or taker.is_closing_now or not taker.unsettled_count:
                continue
            mark = (taker.last_tag, taker.unsettled_count)
            if seen.get(taker) == mark:
                _recall(taker, self._demand_but_of(taker))
            self.seen[taker] = mark
        if self.seen:
            self.watch()

    cdef int _demand_but_of(self, Taker taker) except -1:
        """Do others want a delivery?"""
        cdef Taker other
        cdef int demand = NONE
        for other in self.group.takers:
            if other.egress == taker.egress or other.is_stream or not other.can_take_now():
                continue
            # A circuit's one credit may be a float of those who are busy with what they have.
            if other.cost == 0 or other.credit_count > 1 or other.unsettled_count == 0:
                return LIKELY
            demand = POSSIBLE
        return demand


cdef int _recall(Taker taker, int demand) except -1:
    cdef Carrier carrier = taker.newest
    cdef Move move
    if demand == NONE:
        return 0
    while carrier is not None:
        if isinstance(carrier, Move):
            move = <Move>carrier
            if move.may_be_recalled(demand == LIKELY):
                move.is_recalled = True
                pn.delivery_update(move.outgoing, RELEASED_STATE)
        carrier = carrier.older_out
    return taker.link.endpoint.mark()

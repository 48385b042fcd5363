"""The group, at an ingress, of the addresses of an anycast pattern whose consumers are all at one egress: these
addresses share a circuit.

The messages are those of links without an address, so each names its address, and the egress passes it on by that name
(`router.forwarding.shared_circuit`). An address is *set apart* for a producer when the egress holds too much of it, and
whenever it cannot share: then its messages wait in the address's own group, until a barrier shows that the egress has
passed on the earlier ones. Decision 0060.
"""

from router.forwarding.anycast cimport Anycast
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker


cdef class SharedAnycast(Anycast):
    """The group of the addresses of a pattern that share a circuit to one egress. Its only taker is that circuit."""

    def __init__(self, *given, **options):
        super().__init__(*given, may_be_full=True, **options)
        self.is_to_egress = True
        self.followers = {}

    cdef int follow(self, Inlet inlet) except -1:
        """Have the group of ``inlet``, an address set apart, go on when a circuit of this group has credit or is lost.
        """
        self.followers[inlet] = None
        return 0

    cdef int unfollow(self, Inlet inlet) except -1:
        self.followers.pop(inlet, None)
        return 0

    cdef int on_barrier_blocked(self) except -1:
        self.is_barrier_blocked = True
        return 0

    cdef int on_credit(self, Taker taker) except -1:
        # A barrier goes before the messages that wait for the same credit: without it, an address would stand still.
        if self.is_barrier_blocked and taker.credit_count > 0:
            self.is_barrier_blocked = False
            self._let_follow()
        return Anycast.on_credit(self, taker)

    cdef bint retry(self, Carrier carrier) except -1:
        cdef Inlet inlet = carrier.inlet
        return inlet.retry_apart(carrier)

    def on_taker_left(self, Taker taker, closed, error):
        super().on_taker_left(taker, closed, error)
        self._let_follow()

    def _let_follow(self):
        cdef Inlet inlet
        cdef Group group
        for inlet in list(self.followers):
            group = inlet.group
            group.pump(inlet)

from router.forwarding.copies cimport Copies
from router.forwarding.credit cimport CreditSharing
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from router.forwarding.turns cimport Turns
from router.forwarding.waiting cimport WaitingInlets
from wire.proton cimport pn_delivery_t


cdef class AddressGroup(Group):
    cdef readonly object address
    cdef readonly int phase
    cdef readonly int priority
    cdef readonly object user
    # The egress to which the addresses of an anycast pattern share the circuit; None for any other group.
    cdef readonly object egress
    # The anycast pattern whose addresses may share circuits, for the group of such an address or pattern; else None.
    cdef readonly object pattern
    # The user whose attach made the queue, for an address that is stored at a broker; None if an operator made the
    # queue, or if nobody knows.
    cdef public object maker
    cdef readonly dict inlets
    cdef readonly dict takers
    # Streams (links for large deliveries) and drains; None until first used, because most groups have none.
    cdef dict streams
    cdef object drains
    cdef CreditSharing sharing
    cdef readonly unsigned long long released
    cdef unsigned long long retried
    cdef WaitingInlets waiting
    cdef bint is_kicking
    cdef bint is_kicked
    cdef object timers
    cdef object settings
    cdef object owner
    cdef object actions
    cdef Copies copies
    cdef object hold_timer
    cdef bint is_dead
    # True if an inlet has no credit because no taker may have its deliveries: the next taker's coming concerns all.
    cdef bint has_excluded
    # True from the loss of a taker until all waiting inlets were looked at: a head may be too large for those left.
    cdef bint is_thorough
    # The number of the recording of the group's decisions (`recording.decisions`); 0: they are not recorded.
    cdef readonly unsigned int recording
    # Time in s for which deliveries are held while the group has no taker.
    cdef readonly double hold_s
    cdef unsigned long long deliveries_in_before
    cdef unsigned long long deliveries_out_before
    cdef unsigned long long missed_before

    cdef bytes name_now(self)
    cdef bint has_takers(self) noexcept
    cdef bint has_other_than(self, Inlet inlet) noexcept
    cdef int credit_for(self, Inlet inlet) except? -2147483648
    cdef int top_up_now(self, Inlet inlet) except -1
    cdef int top_up_all(self) except -1
    cdef int offer_credit(self) except -1
    cdef int note_use(self, Inlet inlet) except -1
    cdef int exclude(self, Inlet inlet) except -1
    cdef int end_exclusion(self) except -1
    cdef int kick(self) except -1
    cdef bint serve(self) except -1
    cdef bint serve_in_turn(self, Turns turns) except -1
    cdef bint serve_one(self, Inlet inlet) except -1
    cdef bint _serve_eager(self, list tried) except -1
    cdef bint _needs_no_taker(self, Inlet inlet) except -1
    cdef int wait_for_taker_room(self) except -1
    cdef bint has_ready_taker(self) noexcept
    cdef bint may_pass_on(self) noexcept
    cdef bint offer_again(self, Carrier carrier) except -1
    cdef int _turn_away(self, Inlet inlet) except -1
    cdef int _release_recorded(self, Inlet inlet) except -1
    cdef bint try_step(self, Inlet inlet) except -1
    cdef int look_at_drains(self) except -1
    cdef bint is_for_nobody(self, Inlet inlet) noexcept
    cdef bint drop_head(self, Inlet inlet) except -1
    cdef bint pass_barrier(self, Inlet inlet) except -1
    cdef bint step(self, Inlet inlet) except -1
    cdef Carrier begin(self, Inlet inlet)
    cdef int wait_for_taker(self, Inlet inlet) except -1
    cdef int revive(self) except -1
    cdef int on_changed(self) except -1
    cdef int mark_changed(self) except -1
    cdef int _renew_float(self, Inlet inlet) except -1
    cdef bint _forget_taker(self, Taker taker) except -1
    cdef Carrier refuse(self, Inlet inlet, pn_delivery_t *delivery, object outcome)
    cdef Carrier refuse_transaction(self, Inlet inlet, pn_delivery_t *delivery)

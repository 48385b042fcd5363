from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.move cimport Move
from router.forwarding.ranking cimport Ranking
from router.forwarding.recall cimport Recalls
from router.forwarding.too_large cimport TooLarge
from wire.proton cimport pn_delivery_t


cdef class Anycast(AddressGroup):
    cdef readonly bint is_closest
    # True if deliveries go to the closest takers only, even while these have no credit.
    cdef readonly bint is_strict
    cdef readonly bint is_retransmitted
    cdef dict retries
    # Takers that lead to edge routers, by the number of the connection; None until there is one.
    cdef dict at_edges
    # Number of local takers to which a returned delivery can be offered, valid for this version of the group.
    cdef int offerable
    cdef unsigned int offerable_version
    cdef unsigned long long turn
    # The takers in the order in which they are tried; None after a change. A group that has had many takers at a time
    # ranks them in place of this.
    cdef list takers_listed
    cdef Ranking ranking
    cdef Recalls recalls
    # Handles messages that are too large for the consumers here; None until a queue has sent one.
    cdef TooLarge too_large
    # Links from brokers with returned messages that no taker here accepts; None until there is one.
    cdef dict unwanted
    # True if some inlets have no float (credit without a consumer's credit) because their deliveries were recalled.
    cdef bint has_resting

    cdef bint has_local(self) noexcept
    cdef int wait_for_room(self, Inlet inlet) except -1
    cdef bint leads_nowhere(self, Inlet inlet) noexcept
    cdef int watch_circuits(self) except -1
    cdef bint _has_ready_for(self, Inlet inlet) except -1
    cdef int _wake_if_writable(self, Taker taker) except -1
    cdef int nearest_cost(self, Inlet inlet, list tried, size_t size) except -2
    cdef int nearest_credit(self, Inlet inlet) except? -2147483648
    cdef TooLarge _renewals(self)
    cdef bint _is_barrier_late(self, Inlet inlet) except -1
    cdef int _credit_at(self, int edge) except -1
    cdef int _recall_further(self, Carrier carrier) except -1
    cdef int _rest(self, object ingress) except -1
    cdef int _wake(self, Taker taker) except -1
    cdef Taker way_to(self, Taker taker, Inlet inlet, bint is_large, size_t size)
    cdef Taker choose(self, Inlet inlet, bint is_large, size_t size)
    cdef Taker _best_elsewhere(self, Inlet inlet, object egress, size_t size)
    cdef Taker best_of(self, Inlet inlet, list tried, size_t size)
    cdef Taker _best_listed(self, Inlet inlet, list tried, size_t size, int cost)
    cdef Taker _best_ranked(self, Inlet inlet, list tried, size_t size, int cost)
    cdef int _rank_all(self) except -1
    cdef Carrier _turn_away_from(self, Inlet inlet, pn_delivery_t *delivery, Taker taker, size_t size)
    cdef int _nearest_recorded(self, Inlet inlet, list tried, size_t size) except -3
    cdef int record_choice(self, Move move, Taker taker, list tried, size_t size) except -1
    cdef int offer_to(self, Move move, Taker taker) except -1
    cdef int _record_again(self, Move move, Taker taker) except -1
    cdef Taker _who_is_too_small(self, Inlet inlet, size_t size)
    cdef bint may_offer_again(self, Inlet inlet) except -1
    cdef int _count_offerable(self) noexcept
    cdef Taker another_for(self, Move move)
    cdef bint has_another_for(self, Move move)
    cdef bint take_over(self, Move move) except -1
    cdef bint has_ready_beside(self, Inlet inlet, object egress) except -1
    cdef Taker taker_at_once(self, Inlet inlet, size_t size)
    cdef int hold_retry(self, Move move) except -1
    cdef int _limit_retry(self, Move move) except -1
    cdef list retries_now(self)

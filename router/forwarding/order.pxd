from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.fan cimport Fan
from wire.proton cimport pn_delivery_t


cdef class Barrier(Carrier):
    cdef Inlet asker
    cdef dict unheard

    cdef int _tell(self, Taker taker, bint is_over) except -1


cdef bint may_take(Inlet inlet, int way, object egress) except -1
cdef bint are_all_passed_on(Inlet inlet) except -1
cdef bint note_under_way(Inlet inlet) except -1
cdef int leave(dict inlets, Taker left) except -1
cdef int give_up_order(dict inlets, Taker left) except -1
cdef bint has_only_barriers(Taker left) except -1
cdef bint has_passed_on(dict inlets, Taker left) except -1
cdef bint answer_barrier(Inlet inlet) except -1
cdef Fan start_barriers(Inlet inlet, list branches)

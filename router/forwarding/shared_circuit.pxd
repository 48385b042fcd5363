from router.forwarding.address cimport AddressGroup
from router.forwarding.anycast cimport Anycast
from router.forwarding.ends cimport Inlet, Taker
from router.forwarding.held_inlet cimport HeldInlet
from wire.address_cache cimport AddressCache
from wire.proton cimport pn_delivery_t


cdef class LateInlet(HeldInlet):
    cdef SharedCircuit circuit
    cdef unsigned long long seen_late

    cdef int take(self, pn_delivery_t *delivery, bytes message) except -1
    cdef int tell_late(self) except -1


cdef class SharedCircuit(Inlet):
    cdef dict late  # group of an address -> the `LateInlet` here, for addresses whose deliveries may have to wait
    cdef bytes prefix
    cdef object look_timer

    cdef int read(self) except -1
    cdef int grant(self) except -1
    cdef int _take(self) except -1
    cdef int _dispatch(self, pn_delivery_t *delivery, bytes message) except -1
    cdef int _pass_on(self, Anycast group, Taker taker, pn_delivery_t *delivery, bytes message) except -1
    cdef int give_back(self, pn_delivery_t *delivery, size_t size) except -1
    cdef int _answer(self, pn_delivery_t *delivery) except -1
    cdef LateInlet _add_late(self, Anycast group)


cdef class SharedArrivals(AddressGroup):
    cdef object find
    cdef readonly AddressCache known  # bytes of `to` -> group of the address
    cdef readonly str distribution

    cdef Anycast group_in(self, bytes message, dict late)

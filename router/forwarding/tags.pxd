from wire.proton cimport pn_delivery_t

cdef enum:
    TAG_BYTES = 10


cdef int write_tag(unsigned char *room, unsigned long long number, int producers) noexcept
cdef int producers_of(pn_delivery_t *delivery) noexcept
cdef bint is_barrier(pn_delivery_t *delivery) noexcept

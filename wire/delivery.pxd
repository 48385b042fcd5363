from wire.proton cimport ACCEPTED_STATE, MODIFIED_STATE, pn_delivery_t


cdef inline bint is_terminal(size_t state) noexcept:
    return ACCEPTED_STATE <= state <= MODIFIED_STATE


cdef size_t pending_now(pn_delivery_t *delivery) noexcept
cdef bint copy_state(pn_delivery_t *origin, pn_delivery_t *goal) except -1
cdef int set_failed(pn_delivery_t *delivery) noexcept

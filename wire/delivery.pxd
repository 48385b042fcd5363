from wire.proton cimport pn_delivery_t

cdef size_t pending_now(pn_delivery_t *delivery) noexcept
cdef bint copy_state(pn_delivery_t *origin, pn_delivery_t *goal) noexcept
cdef int set_failed(pn_delivery_t *delivery) noexcept

from router.forwarding.ends cimport Taker


cdef class TakerWatch:
    cdef Taker taker
    cdef object timer
    # Deliveries and bytes that had gone to the taker when the watch began.
    cdef unsigned long long deliveries_out
    cdef size_t sent_bytes

    cdef bint has_moved(self) noexcept


cdef TakerWatch watch(TakerWatch now, Taker taker, object timers, double patience_s, object on_end)
cdef int end_watch(TakerWatch now) except -1

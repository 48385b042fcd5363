from wire.core cimport IncomingCore


cdef class Guard:
    cdef IncomingCore link
    cdef size_t max_message_bytes
    cdef object tell
    # Time for which a begun delivery may stand still, in checks of a quarter of the limit each; None for any time.
    cdef object patience
    cdef object timer
    cdef unsigned int seen_count
    cdef size_t seen_bytes
    cdef int still_looks
    cdef bint is_stalled

    cdef bint has_offended(self) noexcept
    cdef size_t _size(self) noexcept
    cdef int watch(self) except -1
    cdef bint _has_moved(self) noexcept
    cdef bint _may_send(self) noexcept

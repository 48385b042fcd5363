from wire.core cimport IncomingCore


cdef class Guard:
    cdef IncomingCore link
    cdef size_t max_message_bytes
    cdef object tell

    cdef bint has_offended(self) noexcept
    cdef size_t _size(self) noexcept

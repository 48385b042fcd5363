cdef class Copies:
    cdef readonly size_t used_bytes
    cdef readonly size_t limit_bytes

    cdef bint take(self, size_t size) noexcept

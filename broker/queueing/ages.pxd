cdef class Ages:
    cdef long long *ids
    cdef unsigned long long *times_us
    cdef readonly int count

    cdef void note(self, long long message_id, unsigned long long now_us) noexcept
    cdef void _thin_out(self, unsigned long long now_us) noexcept
    cdef unsigned long long came_at_us(self, long long message_id) noexcept

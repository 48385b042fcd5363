cdef bint has_time_left(char *message, size_t size, unsigned long long *counted_us) noexcept

cdef unsigned long long new_tie(void *carrier) except 0
cdef void *carrier_of(unsigned long long tie) noexcept
cdef void end_tie(unsigned long long tie) noexcept

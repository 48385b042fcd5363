ctypedef struct Alike:
    unsigned int incoming
    unsigned int outgoing
    unsigned short bucket
    unsigned char outcome
    unsigned char part
    unsigned char kind
    unsigned int count  # deliveries; 0: this place of the table is free
    unsigned int took_us
    unsigned int size_bytes


cdef class TrafficSums:
    cdef Alike *table
    cdef unsigned int *places  # places of the table that are in use, in order of first use
    cdef readonly unsigned int used

    cdef bint add(
        self, unsigned int incoming, unsigned int outgoing, unsigned int took_us, unsigned int size_bytes,
        unsigned char outcome, unsigned char part, unsigned char kind,
    ) noexcept  # fmt: skip
    cdef Alike at(self, unsigned int number) noexcept
    cdef void clear(self) noexcept


cdef unsigned short bucket_of(unsigned int took_us) noexcept

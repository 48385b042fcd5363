ctypedef struct Alike:
    unsigned int incoming
    unsigned int outgoing
    unsigned short bucket
    unsigned char outcome
    unsigned char part
    unsigned char kind
    unsigned int count  # 0: a free place
    unsigned int took_us
    unsigned int size_bytes


cdef class TrafficSums:
    cdef Alike *table
    cdef unsigned int *places  # places in use, in order of arrival
    cdef readonly unsigned int used

    cdef bint add(
        self, unsigned int incoming, unsigned int outgoing, unsigned int took_us, unsigned int size_bytes,
        unsigned char outcome, unsigned char part, unsigned char kind,
    ) noexcept  # fmt: skip
    cdef Alike at(self, unsigned int number) noexcept
    cdef void clear(self) noexcept


cdef unsigned short bucket_of(unsigned int took_us) noexcept

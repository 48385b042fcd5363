from wire.proton cimport pn_delivery_t


ctypedef packed struct Record:
    unsigned long long start_us
    unsigned int took_us
    unsigned int size_bytes
    unsigned int incoming
    unsigned int outgoing
    unsigned char outcome
    unsigned char hop
    unsigned short reserved


cdef class Recorder:
    cdef Record *ring
    cdef readonly size_t capacity
    cdef size_t written
    cdef size_t taken
    cdef unsigned long long now_us

    cdef void write(
        self, unsigned long long start_us, size_t size, unsigned int incoming, unsigned int outgoing, size_t outcome
    ) noexcept


cdef Recorder recorder

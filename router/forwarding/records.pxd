from wire.proton cimport pn_delivery_t


cdef enum:
    # What a record says in place of an outcome's code.
    ABORTED = 1
    SENDER_LOST = 2


cdef enum:
    # Of which part of a delivery's way a record tells.
    WHOLE_WAY = 0
    MANY_COPIES = 1
    ONE_COPY = 2


ctypedef packed struct Record:
    unsigned long long start_us
    unsigned int took_us
    unsigned int size_bytes
    unsigned int incoming
    unsigned int outgoing
    unsigned char outcome
    unsigned char part
    unsigned short reserved


cdef class Recorder:
    cdef Record *ring
    cdef readonly size_t capacity
    cdef size_t written
    cdef size_t taken
    cdef unsigned long long now_us
    cdef size_t next  # written % capacity: a division costs more than all else

    cdef void write(
        self, unsigned long long start_us, size_t size, unsigned int incoming, unsigned int outgoing, size_t outcome,
        unsigned char part,
    ) noexcept  # fmt: skip


cdef Recorder recorder
cdef size_t outcome_of(pn_delivery_t *incoming) noexcept
cdef int record_untaken(unsigned int incoming, size_t size, size_t outcome) except -1

ctypedef unsigned long long u64

cdef enum:
    WORDS = 3
    OLD_WORDS = 2


cdef struct Slot:
    u64 size_bytes
    int priority
    bint is_large
    u64 expires_at_ms  # 0: the message never expires


cdef class Slots:
    cdef bytes message_index
    cdef int words
    cdef Py_ssize_t count

    cdef Slot at(self, Py_ssize_t number) noexcept


cdef void put_slot(u64 *at, bint is_first, Slot slot, u64 checksum) noexcept

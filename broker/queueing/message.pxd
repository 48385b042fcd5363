cdef enum:
    # States of a message in a queue. [3.3]
    AVAILABLE
    ACQUIRED
    ARCHIVED
    UNREADABLE
    # The entry's numbers are in a pack: a reference to the entry is of no use.
    PACKED


cdef class QueuedMessage:
    cdef readonly long long message_id
    cdef readonly size_t size_bytes
    cdef readonly bint is_stored
    cdef readonly bint is_large
    cdef readonly unsigned char priority
    cdef double deadline_s  # infinite: never
    # Seconds that the sender's own expiry lies beyond the deadline here.
    cdef float grace_s
    cdef public long references
    cdef bytes body

    cdef bint is_past(self, double now) noexcept


cdef class QueueEntry:
    cdef readonly QueuedMessage message
    cdef readonly long long position
    cdef readonly unsigned int delivery_count
    cdef int standing
    cdef frozenset shunned_by
    cdef readonly object cause

    cdef bint is_past(self, double now) noexcept
    cdef bint is_shunned_by(self, long consumer_id) except -1

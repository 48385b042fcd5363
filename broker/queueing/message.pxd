cdef enum:
    # States of a message in a queue. [3.3]
    AVAILABLE
    ACQUIRED
    ARCHIVED
    UNREADABLE
    # The message is in a pack: this entry object is out of use, and opening the pack makes a new entry.
    PACKED


cdef class QueuedMessage:
    cdef readonly long long message_id
    cdef readonly size_t size_bytes
    cdef readonly bint is_stored
    cdef readonly bint is_large
    cdef readonly unsigned char priority
    cdef double deadline_s  # monotonic; infinite: the message never expires
    # Seconds by which the sender's expiry is later than the deadline, which is earlier in a temporary queue.
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

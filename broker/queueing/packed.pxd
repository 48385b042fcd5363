from broker.queueing.message cimport QueueEntry


cdef enum:
    # The largest number of messages in one pack.
    PACK_ENTRIES = 256


cdef class Pack:
    cdef bytes data
    # The messages in the pack that other queues have, too, by number in the pack, and None for other messages; None
    # instead of a tuple if no message in the pack is in another queue.
    cdef tuple shared
    cdef list entries
    cdef int count
    cdef long long first_position
    cdef long long last_position
    cdef unsigned char priority
    # The earliest and latest deadline among the pack's messages.
    cdef double earliest_s
    cdef double latest_s
    cdef int viewers
    cdef readonly bint is_spent

    cdef list open(self)
    cdef list peek(self)
    cdef bint close(self) except -1
    cdef int drop_archived(self) except -1
    cdef bint has_available(self, double now) except -1
    cdef bint _has_kept(self, int number) noexcept


cdef class Packer:
    cdef unsigned char priority
    cdef unsigned char *at
    cdef unsigned char *buffer
    cdef int count
    cdef long long first_position
    cdef long long last_position
    cdef long long last_id
    cdef long long last_ms
    cdef double earliest_s
    cdef double latest_s
    cdef list shared

    cdef int add_entry(self, QueueEntry entry) except -1
    cdef int add(self, long long message_id, long long position, size_t size_bytes, double deadline_s,
                 unsigned int delivery_count) except -1
    cdef Pack take(self)
    cdef int _begin(self) except -1


cdef bint can_be_packed(QueueEntry entry) noexcept

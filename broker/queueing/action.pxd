from broker.queueing.message cimport QueueEntry


cdef class Deliver:
    cdef readonly long consumer_id
    cdef readonly QueueEntry entry


cdef class Archive:
    cdef readonly QueueEntry entry
    cdef readonly object departure


cdef class Recount:
    cdef readonly QueueEntry entry


cdef class WantMark:
    cdef readonly int priority
    cdef readonly long long message_id

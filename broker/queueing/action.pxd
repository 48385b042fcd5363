from broker.queueing.message cimport Entry


cdef class Deliver:
    cdef readonly long consumer_id
    cdef readonly Entry entry


cdef class Archive:
    cdef readonly Entry entry
    cdef readonly object departure


cdef class Recount:
    cdef readonly Entry entry


cdef class WantMark:
    cdef readonly int priority
    cdef readonly long long message_id

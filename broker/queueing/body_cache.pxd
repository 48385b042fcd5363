from broker.queueing.message cimport QueuedMessage


cdef class Fetch:
    cdef readonly object wanted
    cdef int arrive(self, bytes body, double now) except -1
    cdef int fail(self, double now) except -1


cdef class BodyCache:
    cdef readonly long long pinned_bytes
    cdef readonly long long cached_bytes
    cdef long long cache_bytes
    cdef object cached
    cdef list fetches

    cdef int pin(self, QueuedMessage message, bytes body) except -1
    cdef int unpin(self, QueuedMessage message) except -1
    cdef int forget(self, QueuedMessage message) except -1
    cdef int fetch(self, Fetch fetch) except -1

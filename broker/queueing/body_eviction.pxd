from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.body_cache cimport BodyCache


cdef class BodyEviction:
    cdef BodyCache body_cache
    cdef dict spared
    cdef long long tried_at
    cdef list gave_way

    cdef bint is_due(self) noexcept
    cdef int begin(self) except -1
    cdef HeldQueue furthest_behind(self, dict passing)
    cdef int spare(self, HeldQueue held) except -1
    cdef int note(self, HeldQueue held, long long count, long long size_bytes) except -1

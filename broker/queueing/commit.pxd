cdef class Promise:
    cdef int keep(self, double now) except -1


cdef class Commits:
    cdef public object write
    cdef readonly long long unsynced_bytes
    cdef list promises
    cdef long long bytes_open
    cdef list under_way
    cdef long long bytes_under_way
    cdef double waiting_since
    cdef bint is_due

    cdef int promise_kept_by(self, Promise promise) except -1
    cdef bint _has_to_go(self, double now) except -1
    cdef int note(self, long long size_bytes) except -1

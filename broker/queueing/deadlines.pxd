cdef class Deadlines:
    cdef list heap
    cdef Py_ssize_t left_count
    cdef long long serial

    cdef int add(self, double due_s, object each) except -1
    cdef double next_now(self) except? -1
    cdef object pop_due(self, double now)

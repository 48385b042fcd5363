from broker.message cimport Entry


cdef class Level:
    cdef object fresh
    cdef list returned

    cdef Entry front(self)
    cdef Entry pop(self)
    cdef bint has_for(self, long consumer_id, double now) except -1


cdef class Line:
    cdef list levels
    cdef unsigned int used

    cdef int append(self, Entry entry) except -1
    cdef int put_back(self, Entry entry) except -1
    cdef Entry pop(self)
    cdef Entry pop_oldest(self)
    cdef bint has_for(self, long consumer_id, double now) except -1
    cdef list in_order(self)
    cdef list first(self, Py_ssize_t count)
    cdef Level _level(self, int priority)

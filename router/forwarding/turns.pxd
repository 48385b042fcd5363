cdef class Turns:
    cdef list heap
    cdef long long last

    cdef int add(self, object who, int level) except -1
    cdef object next(self)


cdef enum:
    USUAL_LEVEL = 4


cdef int level_of(bytes message) noexcept

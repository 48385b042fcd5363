cdef enum:
    USUAL_LEVEL = 4
    # Number of message priorities, 0 to 9; higher priorities count as 9. [3.2.1]
    LEVELS = 10


cdef class Turns:
    cdef list queues
    cdef size_t served[LEVELS]
    cdef int highest

    cdef int add(self, object who, int level) except -1
    cdef int level_now(self) noexcept
    cdef object next(self)


cdef int level_of(bytes message) noexcept

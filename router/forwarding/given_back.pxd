from router.forwarding.move cimport Move


cdef bint give_on(Move move, bint is_over) except -1
cdef bint tell_said(Move move) except -1

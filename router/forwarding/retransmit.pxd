from router.forwarding.move cimport Move


cdef bint send_again(Move move) except -1
cdef int tell_lost(Move move) except -1

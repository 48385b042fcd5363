from router.forwarding.ends cimport Inlet


cdef class HeldInlet(Inlet):
    # Waiting messages: a deque of (delivery, bytes), or (delivery, bytes, mark) for a returned one.
    cdef object held

cdef enum:
    # The first byte of an addressed body. A message begins with 0, since each section is a described value.
    ADDRESSED = 1

cdef enum:
    # Results of `lead_bytes` for a body without a lead, and for bytes that end before the lead's section of the message.
    PLAIN = 0
    CUT_LEAD = -1


cpdef bytes addressed(bytes message, bytes address)
cpdef Py_ssize_t lead_bytes(bytes body) noexcept
cpdef bytes as_published(bytes body)

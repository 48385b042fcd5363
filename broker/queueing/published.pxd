from wire.address_cache cimport AddressCache


cdef class PublishedTopics:
    cdef AddressCache cache
    # Subscriptions, as a tuple -> the list of the same that topics share.
    cdef dict lists
    cdef double due_s
    cdef double now

    cdef list subscriptions_of(self, bytes topic)
    cdef bytes name_of(self, bytes topic)
    cpdef int forget_all(self) except -1

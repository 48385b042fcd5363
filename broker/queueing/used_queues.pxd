from broker.queueing.held_queue cimport HeldQueue
from wire.address_cache cimport AddressCache


cdef class UsedQueues:
    cdef AddressCache cache
    cdef double due_s
    cdef double now

    cdef HeldQueue queue_at(self, bytes address, double now)

from broker.commit cimport Commits
from broker.held_queue cimport HeldQueue


cdef class Queues:
    cdef Commits commits
    cdef object policy_of
    cdef dict queues
    cdef object subscriptions
    cdef dict subscribers
    cdef dict every
    # Those of them that lie in memory.
    cdef dict passing
    cdef long next_queue_id
    # Told of durable queues that are made and that go; None: nobody is.
    cdef object watcher

    cdef int forget(self, HeldQueue held) except -1

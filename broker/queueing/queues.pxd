from broker.queueing.commit cimport Commits
from broker.queueing.held_queue cimport HeldQueue
from recording.records cimport Recorder


cdef class BrokerQueues:
    cdef Commits commits
    cdef Recorder recorder
    cdef object policy_of
    cdef dict queues
    cdef object subscriptions
    cdef dict subscribers
    cdef dict every
    # The non-durable subscriptions.
    cdef dict passing
    cdef long next_queue_id
    # Told of durable queues made and deleted; None: no watcher.
    cdef object watcher

    cdef int forget(self, HeldQueue held) except -1

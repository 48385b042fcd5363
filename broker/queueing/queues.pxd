from broker.queueing.commit cimport Commits
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.published cimport PublishedTopics
from broker.queueing.used_queues cimport UsedQueues
from recording.records cimport Recorder


cdef class BrokerQueues:
    cdef Commits commits
    cdef Recorder recorder
    cdef object policy_of
    cdef dict queues
    cdef object subscriptions
    cdef readonly PublishedTopics published
    cdef readonly UsedQueues used
    cdef dict subscribers
    cdef dict every
    # The non-durable subscriptions, as a set: their messages are in memory only.
    cdef dict passing
    # Number of subscriptions with wildcards.
    cdef long wildcard_count
    cdef long next_queue_id
    # Has its ``on_made`` and ``on_gone`` called for durable queues, not for subscriptions; None: no watcher.
    cdef object watcher

    cdef int forget(self, HeldQueue held) except -1

from broker.queueing.commit cimport Commits
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport QueuedMessage


cdef class Annotated:
    cdef Commits commits
    cdef dict sections
    cdef readonly long long size_bytes

    cdef int restore(self, HeldQueue held, long long message_id, bytes section) except -1
    cdef int add(self, HeldQueue held, QueuedMessage message, object annotations) except -1
    cdef bytes get(self, HeldQueue held, long long message_id)
    cdef int leave(self, HeldQueue held, QueuedMessage message, HeldQueue target) except -1
    cdef int drop_queue(self, HeldQueue held) except -1
    cdef int _write(self, HeldQueue held, QueuedMessage message, object section) except -1

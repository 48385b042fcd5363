from broker.queueing.ages cimport Ages
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport QueuedMessage


cdef class MessageRecords:
    cdef Ages stored
    cdef Ages passing

    cdef int enqueued(self, HeldQueue held, QueuedMessage message, double now) except -1
    cdef int left(self, HeldQueue held, QueuedMessage message, object departure, bint is_moved_on, double now) except -1
    cdef unsigned int age_us(self, QueuedMessage message, unsigned long long now_us) noexcept

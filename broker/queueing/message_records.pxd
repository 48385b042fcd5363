from broker.queueing.ages cimport Ages
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport Message


cdef class MessageRecords:
    cdef Ages stored
    cdef Ages passing

    cdef int enqueued(self, HeldQueue held, Message message, double now) except -1
    cdef int left(self, HeldQueue held, Message message, object departure, bint is_moved_on, double now) except -1
    cdef unsigned int age_us(self, Message message, unsigned long long now_us) noexcept

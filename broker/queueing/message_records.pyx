"""Writes records of messages that enter and leave queues into the broker's link log. See `recording.records`."""

from broker.queueing.ages cimport Ages
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport QueuedMessage

from broker.queueing.action import Departure

cdef enum:
    # Each member is the number of a kind of records, as in `recording.ring_format.KINDS`.
    ENQUEUED = 3
    DEQUEUED = 4
    EXPIRED = 5
    DEAD_LETTERED = 6
    REMOVED = 7

cdef unsigned int LARGEST = 0xFFFFFFFF


cdef class MessageRecords:
    """Writes the records of messages that enter and leave queues; called only for queues that are recorded."""

    def __cinit__(self):
        # A message that is not stored has a negative id, and such ids fall from -1: ``passing`` has the negated ids,
        # since Ages need rising ids.
        self.stored, self.passing = Ages(), Ages()

    cdef int enqueued(self, HeldQueue held, QueuedMessage message, double now) except -1:
        cdef unsigned long long now_us = <unsigned long long>(now * 1e6)
        if message.message_id >= 0:
            self.stored.note(message.message_id, now_us)
        else:
            self.passing.note(-message.message_id, now_us)
        held.note_change()
        held.recorder.write_message(held.record_level, ENQUEUED, now_us, 0, message.size_bytes, held.number)
        return 0

    cdef int left(self, HeldQueue held, QueuedMessage message, object departure, bint is_moved_on, double now) except -1:
        """Record that a message left queue ``held``; ``is_moved_on``: it moves to the queue that the policy names."""
        cdef unsigned long long now_us = <unsigned long long>(now * 1e6)
        cdef unsigned int age_us = self.age_us(message, now_us)
        cdef int kind = REMOVED
        if departure is Departure.ACCEPTED:
            kind = DEQUEUED
        elif departure is Departure.EXPIRED:
            kind = EXPIRED
        elif is_moved_on:
            kind = DEAD_LETTERED
        held.note_change()
        held.recorder.write_message(held.record_level, kind, now_us - age_us, age_us, message.size_bytes, held.number)
        return 0

    cdef unsigned int age_us(self, QueuedMessage message, unsigned long long now_us) noexcept:
        cdef unsigned long long came_us
        if message.message_id >= 0:
            came_us = self.stored.came_at_us(message.message_id)
        else:
            came_us = self.passing.came_at_us(-message.message_id)
        if not came_us or came_us > now_us:
            return 0
        return <unsigned int>min(now_us - came_us, LARGEST)

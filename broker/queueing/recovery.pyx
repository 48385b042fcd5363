"""Recovery of queues at the start of a broker: messages in the store go back into their queues in memory.

Millions may wait in a queue: messages that can be packed are put into packs, a few bytes for each, straight from the
bytes in the store.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.math cimport INFINITY

from broker.queueing.message cimport QueuedMessage
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message_store cimport MessageStore
from broker.store.message_index cimport Slot, Slots
from broker.store.segments cimport Count

from bisect import bisect_left


def recover_queues(MessageStore message_store not None, inventory, double now, long long least_position=1):
    """Make the durable queues of ``inventory``, the content of the store, in ``message_store``, with their messages.

    The inventory's segments are read from the disk during the call. The positions of messages begin at
    ``least_position`` or above.
    """
    cdef dict by_id
    cdef HeldQueue held
    message_store.now = now
    if inventory.queues or inventory.next_message_id > 1:
        message_store.begin_positions(least_position)
    by_id = {row.queue_id: message_store.add_from(row) for row in inventory.queues}
    message_store.next_queue_id, message_store.next_message_id = inventory.next_queue_id, inventory.next_message_id
    message_store.first_message_id = inventory.next_message_id
    recovery = _Restocking(message_store, by_id, inventory.causes, now)
    for segment in inventory.segments:
        recovery.take(segment)
    for (queue_id, message_id), section in inventory.annotations.items():
        if queue_id in by_id:
            message_store.annotated.restore(by_id[queue_id], message_id, section)
    for held in by_id.values():
        held.queue.end_restoring()
        message_store._await_deadline(held, held.queue.deadline_now())
        if held.record_level:
            held.note_change()


cdef class _Restocking:
    """Puts the messages of the store, segment after segment, into their queues."""

    cdef MessageStore message_store
    cdef dict by_id
    cdef dict causes
    cdef list caused
    cdef double now

    def __cinit__(self, MessageStore message_store, dict by_id, dict causes, double now):
        self.message_store, self.by_id, self.causes, self.now = message_store, by_id, causes, now
        self.caused = sorted({message_id for _, message_id in causes})

    def take(self, segment):
        cdef Slots slots = Slots(segment.message_index)
        cdef long long first = segment.first_id
        cdef list holders = [(self.by_id[queue_id], counts) for queue_id, counts in segment.holdings]
        cdef Py_ssize_t number
        if len(holders) == 1 and not self._has_moved(first, slots.count):
            held, counts = holders[0]
            self._take_over(held, first, slots, counts)
            return
        for number in range(slots.count):
            having = [
                (held, counts) for held, counts in holders if (<const Count *>PyBytes_AS_STRING(counts))[number]
            ]
            if having:
                self._let_in(first + number, slots.at(number), having, number)

    cdef bint _has_moved(self, long long first, Py_ssize_t count) except -1:
        """Whether any of the ``count`` messages with ids from ``first`` upwards was moved to another queue before."""
        cdef Py_ssize_t place = bisect_left(self.caused, first)
        return place < len(self.caused) and <long long>self.caused[place] < first + count

    cdef int _take_over(self, HeldQueue held, long long first, Slots slots, bytes counts) except -1:
        """Restore the messages of a segment of which only queue ``held`` has any, and none was moved to it."""
        cdef const Count *count = <const Count *>PyBytes_AS_STRING(counts)
        cdef Py_ssize_t number
        cdef Slot slot
        for number in range(slots.count):
            if count[number]:
                slot = slots.at(number)
                if slot.is_large:
                    self._let_in(first + number, slot, [(held, counts)], number)
                else:
                    self._restore(held, first + number, slot, count[number] - 1)
        return 0

    cdef int _restore(self, HeldQueue held, long long message_id, Slot slot, unsigned int delivery_count) except -1:
        return held.queue.restore(message_id, slot.size_bytes, slot.priority, self._deadline_s(slot), delivery_count)

    cdef int _let_in(self, long long message_id, Slot slot, list having, Py_ssize_t number) except -1:
        """Restore one message into each queue of ``having``, a list of (queue, counts of its holding).

        ``number`` is the message's place in its segment.
        """
        cdef QueuedMessage message
        cdef HeldQueue held
        cdef bytes counts
        held, counts = having[0]
        if len(having) == 1 and not slot.is_large and (held.queue_id, message_id) not in self.causes:
            return self._restore(held, message_id, slot, (<const Count *>PyBytes_AS_STRING(counts))[number] - 1)
        message = QueuedMessage(message_id, slot.size_bytes, True, slot.is_large, None, slot.priority)
        message.deadline_s = self._deadline_s(slot)
        message.references = len(having)
        for held, counts in having:
            cause = self.causes.get((held.queue_id, message_id))
            if cause is not None:
                held.moved.add(message_id)
            delivery_count = (<const Count *>PyBytes_AS_STRING(counts))[number] - 1
            self.message_store.let_in(held, message, self.now, delivery_count, cause)
        return 0

    cdef double _deadline_s(self, Slot slot) noexcept:
        return slot.expires_at_ms / 1000.0 - self.message_store.wall_offset_s if slot.expires_at_ms else INFINITY

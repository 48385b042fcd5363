from broker.queueing.message cimport QueueEntry
from broker.queueing.packed cimport Packer


cdef class PriorityLevel:
    cdef unsigned char priority
    cdef Py_ssize_t front_entries
    cdef Py_ssize_t pack_entries
    cdef list made
    cdef list spent
    cdef object fresh
    cdef list returned
    # Packs and runs behind ``fresh``; None while all entries of the level are in ``fresh``. A run is a list of at most
    # PACK_ENTRIES entries that cannot be packed.
    cdef object later
    cdef object tail
    cdef Packer restoring

    cdef int append(self, QueueEntry entry) except -1
    cdef int restore(self, long long message_id, long long position, size_t size_bytes, double deadline_s,
                     unsigned int delivery_count) except -1
    cdef int _restore_shared(self, QueueEntry entry) except -1
    cdef int end_restoring(self) except -1
    cdef int pack(self) except -1
    cdef Py_ssize_t drop_front(self) except -1
    cdef int sweep(self) except -1
    cdef int add_at(self, list positions, set wanted, list found, list opened) except -1
    cdef int add_beyond(self, long long position, Py_ssize_t count, list found, list opened) except -1
    cdef QueueEntry front(self)
    cdef QueueEntry pop(self)
    cdef bint has_for(self, long consumer_id, double now) except -1
    cdef int _bring_forward(self) except -1
    cdef int _flush(self, Packer packer) except -1
    cdef int _append_later(self, QueueEntry entry) except -1


cdef class DeliveryOrder:
    cdef Py_ssize_t front_entries
    cdef Py_ssize_t pack_entries
    cdef list levels
    cdef unsigned int used
    cdef list made
    cdef list spent

    cdef int append(self, QueueEntry entry) except -1
    cdef int restore(self, int priority, long long message_id, long long position, size_t size_bytes,
                     double deadline_s, unsigned int delivery_count) except -1
    cdef int end_restoring(self) except -1
    cdef int pack(self, int priority) except -1
    cdef Py_ssize_t drop_front(self) except -1
    cdef int sweep(self) except -1
    cdef int put_back(self, QueueEntry entry) except -1
    cdef QueueEntry pop(self)
    cdef QueueEntry pop_oldest(self)
    cdef QueueEntry oldest(self)
    cdef bint has_for(self, long consumer_id, double now) except -1
    cdef list first(self, Py_ssize_t count)
    cdef list at(self, list positions, list opened)
    cdef list beyond(self, long long position, Py_ssize_t count, list opened)
    cdef PriorityLevel _level(self, int priority)

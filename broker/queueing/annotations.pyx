"""Message-annotations that consumers added, with the outcome modified, to messages that went back to a queue. [3.4.5]

A message in several queues and subscriptions has separate annotations in each. All annotations are in memory, and those
of durable queues in the store, too. An addition beyond the limit of a message or of the whole broker is ignored.
"""

from broker.queueing.commit cimport Commits
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport QueuedMessage

from wire.annotations import merged

MOST_BYTES = 32_768
"""Limit in bytes of the encoded annotations that consumers added to one message in one queue."""
BUDGET_BYTES = 16 << 20
"""Limit in bytes of the encoded annotations that consumers added to all messages of a broker."""
cdef long long _MOST_BYTES = MOST_BYTES, _BUDGET_BYTES = BUDGET_BYTES


cdef class Annotated:
    """The annotations that consumers added to messages in a broker's queues: one encoded section for each such message.

    Always: ``size_bytes`` is the sum of the sizes of ``sections``, whose keys are (number of the queue, message id)
    """

    def __cinit__(self, Commits commits):
        self.commits = commits
        self.sections = {}

    cdef int restore(self, HeldQueue held, long long message_id, bytes section) except -1:
        """Take over the annotations of a message in queue ``held`` from the store, when the broker starts."""
        self.sections[held.number, message_id] = section
        self.size_bytes += len(section)
        return 0

    cdef int add(self, HeldQueue held, QueuedMessage message, object annotations) except -1:
        """Add ``annotations`` to those of a message in queue ``held``; write all of them if the queue is durable.

        A new annotation replaces an earlier one of the same name. Nothing is done if a limit would be exceeded.
        """
        cdef tuple key = (held.number, message.message_id)
        cdef bytes before = self.sections.get(key, b"")
        cdef bytes after = merged(before, annotations)
        cdef long long more = len(after) - len(before)
        if after == before or len(after) > _MOST_BYTES or self.size_bytes + more > _BUDGET_BYTES:
            return 0
        self.sections[key] = after
        self.size_bytes += more
        return self._write(held, message, after)

    cdef bytes get(self, HeldQueue held, long long message_id):
        """Return the encoded annotations that consumers added to a message in queue ``held``; None for none."""
        return self.sections.get((held.number, message_id)) if self.size_bytes else None

    cdef int leave(self, HeldQueue held, QueuedMessage message, HeldQueue target) except -1:
        """Pass the annotations of a message that left queue ``held`` on to ``target``; delete them if it is None."""
        cdef bytes found
        if not self.size_bytes:
            return 0
        found = self.sections.pop((held.number, message.message_id), None)
        if found is None:
            return 0
        self._write(held, message, None)
        if target is None:
            self.size_bytes -= len(found)
            return 0
        self.sections[target.number, message.message_id] = found
        return self._write(target, message, found)

    cdef int drop_queue(self, HeldQueue held) except -1:
        """Forget all annotations of a deleted queue; the store deletes their rows with the queue's."""
        if self.size_bytes:
            for key in [key for key in self.sections if key[0] == held.number]:
                self.size_bytes -= len(self.sections.pop(key))
        return 0

    cdef int _write(self, HeldQueue held, QueuedMessage message, object section) except -1:
        if held.row is not None and message.is_stored and not held.is_deleted:
            self.commits.write.annotations[held.queue_id, message.message_id] = section
        return 0

"""Which message-annotations did consumers add to messages that they gave back? [3.4.5]

A message that lies in several queues and subscriptions has annotations of its own in each. They are kept in memory, and
of durable queues in the store. What would go beyond a limit, of one message or of the whole broker, is left out.
"""

from broker.commit cimport Commits
from broker.held_queue cimport HeldQueue
from broker.message cimport Message

from wire.annotations import merged

MOST_BYTES = 32_768
"""Of the annotations that consumers added to one message, encoded."""
BUDGET_BYTES = 16 << 20
"""Of those of all messages of a broker."""
cdef long long _MOST_BYTES = MOST_BYTES, _BUDGET_BYTES = BUDGET_BYTES


cdef class Annotated:
    """Always: ``size_bytes`` is the sum of the sections in ``sections``, by number of the queue and message id."""

    def __cinit__(self, Commits commits):
        self.commits = commits
        self.sections = {}

    cdef int restore(self, HeldQueue held, long long message_id, bytes section) except -1:
        """The store has these."""
        self.sections[held.number, message_id] = section
        self.size_bytes += len(section)
        return 0

    cdef int add(self, HeldQueue held, Message message, object annotations) except -1:
        """Merge these into those that consumers gave the message before."""
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
        """As encoded; None when there are none."""
        return self.sections.get((held.number, message_id)) if self.size_bytes else None

    cdef int leave(self, HeldQueue held, Message message, HeldQueue target) except -1:
        """The message left its queue, for ``target`` or, where that is None, for good."""
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
        """The rows of the queue go with the queue."""
        if self.size_bytes:
            for key in [key for key in self.sections if key[0] == held.number]:
                self.size_bytes -= len(self.sections.pop(key))
        return 0

    cdef int _write(self, HeldQueue held, Message message, object section) except -1:
        if held.row is not None and message.is_stored and not held.is_deleted:
            self.commits.write.annotations[held.queue_id, message.message_id] = section
        return 0

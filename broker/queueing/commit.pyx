"""Group commit: all writes of a moment go to the disk in one batch with one sync; then their promises are kept.

A promise is work that must wait for the disk, such as accepting a message.

While one batch is being synced the next batch collects writes, so the batch size follows the load. Writes for which no
promise waits, such as the removal of a message, wait up to PATIENCE_S seconds for a promise; pieces of a large body do
not wait.
"""

from libc.math cimport INFINITY

from broker.store.batch import WriteBatch
from wire.errors import LocalStateError


PATIENCE_S = 0.01
cdef double _PATIENCE_S = PATIENCE_S


cdef class Promise:
    """Work that waits until everything written before the promise was made is on disk; then ``keep`` is called."""

    cdef int keep(self, double now) except -1:
        raise NotImplementedError


cdef class _Call(Promise):
    cdef object what

    def __cinit__(self, what):
        self.what = what

    cdef int keep(self, double now) except -1:
        self.what(now)
        return 0


cdef class Commits:
    """Collects a broker's writes in an open batch, and the promises that wait for the batch to be committed.

    Always: promises are kept in order, each after the commit of the batch that was open when the promise was made
    Always: at most one batch is being committed

    ``write`` is the open batch: add to the batch before or after making the promise that needs the write.
    """

    def __init__(self):
        self.write = WriteBatch()
        self.promises = []
        self.waiting_since = INFINITY

    def promise(self, keep):
        """Have ``keep(now)`` called once the open batch is on disk."""
        self.promise_kept_by(_Call(keep))

    cdef int promise_kept_by(self, Promise promise) except -1:
        self.promises.append(promise)
        return 0

    cdef int note(self, long long size_bytes) except -1:
        """Count bytes of a body added to the open batch; too many ``unsynced_bytes`` hold all producers back."""
        self.bytes_open += size_bytes
        self.unsynced_bytes += size_bytes
        return 0

    def take(self, double now):
        """Return the open batch, to be committed now, and open the next one.

        None while another batch is being committed. Without a promise, None, too, while the open batch is empty or can
        wait for a promise.
        """
        if self.under_way is not None or not self._has_to_go(now):
            return None
        self.waiting_since = INFINITY
        self.is_due = False
        batch, self.write = self.write, WriteBatch()
        self.under_way, self.promises = self.promises, []
        self.bytes_under_way, self.bytes_open = self.bytes_open, 0
        return batch

    cdef bint _has_to_go(self, double now) except -1:
        if self.promises or self.write.pieces:
            return True
        if self.is_due or self.write.is_empty:
            return self.is_due
        self.waiting_since = min(self.waiting_since, now)
        return False

    def next_deadline(self):
        """Return the time of the next call of ``on_time``; None unless writes without a promise are waiting for one."""
        return None if self.is_due or self.waiting_since == INFINITY else self.waiting_since + _PATIENCE_S

    def on_time(self, double now):
        if now >= self.waiting_since + _PATIENCE_S:
            self.is_due = True

    def close(self):
        """Have `take` return the open batch, unless it is empty, though no promise waits for it: the broker stops."""
        self.is_due = not self.write.is_empty

    def on_committed(self, double now):
        cdef list kept = self.under_way
        cdef Promise promise
        if kept is None:
            raise LocalStateError("expected a batch that was begun, got none")
        self.under_way = None
        self.unsynced_bytes -= self.bytes_under_way
        self.bytes_under_way = 0
        for promise in kept:
            promise.keep(now)

"""What must be on disk before what may be said? Persist, then promise.

While one batch is being synced the next one collects: that is group commit, and its size follows the load by itself.
"""

from broker.store.batch import WriteBatch
from wire.errors import LocalStateError


cdef class Promise:
    """Kept, with the time, once everything written before it was made is on disk."""

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
    """Collects writes and promises.

    Always: a promise is kept after the commit of the batch that was open when it was made, in order
    Always: at most one batch is under way

    ``write`` is the open batch: add to it, before or after making the promise that needs it.
    """

    def __init__(self):
        self.write = WriteBatch()
        self.promises = []

    def promise(self, keep):
        """Have ``keep`` called with the time."""
        self.promise_kept_by(_Call(keep))

    cdef int promise_kept_by(self, Promise promise) except -1:
        self.promises.append(promise)
        return 0

    cdef int note(self, long long size_bytes) except -1:
        """Bodies in the open batch: what producers are held back by."""
        self.bytes_open += size_bytes
        self.unsynced_bytes += size_bytes
        return 0

    def take(self):
        """The open batch, to be committed now; None when one is under way or there is nothing to do."""
        if self.under_way is not None or (self.write.is_empty and not self.promises):
            return None
        batch, self.write = self.write, WriteBatch()
        self.under_way, self.promises = self.promises, []
        self.bytes_under_way, self.bytes_open = self.bytes_open, 0
        return batch

    def on_committed(self, double now):
        cdef list kept = self.under_way
        cdef Promise promise
        if kept is None:
            raise LocalStateError("no batch is under way")
        self.under_way = None
        self.unsynced_bytes -= self.bytes_under_way
        self.bytes_under_way = 0
        for promise in kept:
            promise.keep(now)

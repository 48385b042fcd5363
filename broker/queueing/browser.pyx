"""A browser, a consumer that sees messages and takes none.

A browser sees the messages that wait in the queue when the browser attaches, then every new message. The
browser skips messages that are gone, expired, held by a consumer or too large for the browser when their turn comes.
"""

from broker.queueing.message cimport ARCHIVED, AVAILABLE, QueueEntry
from broker.queueing.packed cimport Pack

from collections import deque

cdef enum:
    SLACK = 1000


cdef class Browser:
    """The messages that one browser has not seen yet: ``ahead`` has their entries and packs.

    First are those present at the attach, in delivery order, then new ones in order of arrival.
    ``viewed`` is the pack whose entries are being shown; ``left_open`` has the packs shown before and not closed yet.
    """

    def __cinit__(self, long consumer_id, ahead):
        self.consumer_id = consumer_id
        self.ahead = deque(ahead)
        self.left_open = []

    cdef int expect(self, QueueEntry entry, long long there_count) except -1:
        """Append the new entry to ``ahead``, for this browser to show later.

        Archived entries are dropped from ``ahead`` before they pile up.
        """
        self.ahead.append(entry)
        if len(self.ahead) > 2 * there_count + SLACK:
            self.ahead = deque([each for each in self.ahead if not _is_gone(each)])
        return 0

    cdef QueueEntry pop(self, double now):
        """Remove from ``ahead`` and return the next entry to show; None when there is none.

        Entries that are gone, held, expired or too large for the browser are skipped.
        """
        cdef QueueEntry entry
        while self.ahead:
            if type(self.ahead[0]) is Pack:
                self._open_next()
                continue
            entry = self.ahead.popleft()
            if entry.standing != AVAILABLE or entry.is_past(now):
                continue
            if self.most_bytes and entry.message.size_bytes > self.most_bytes:
                self.left_out_bytes = self.left_out_bytes or entry.message.size_bytes
                continue
            self.shown_count += 1
            return entry
        return None

    cdef bint is_dry(self, double now) except -1:
        for each in self.ahead:
            if (<Pack>each).has_available(now) if type(each) is Pack else (<QueueEntry>each).standing == AVAILABLE:
                return False
        return True

    cdef int close_passed(self) except -1:
        """Close the packs that the browser has passed, except packs with messages still on the way to the browser.

        Call once ``references`` of these messages count their deliveries.
        """
        if self.left_open:
            self.left_open = [pack for pack in self.left_open if not (<Pack>pack).close()]
        return 0

    cdef int leave(self) except -1:
        self._pass_viewed()
        return self.close_passed()

    cdef int _open_next(self) except -1:
        cdef Pack pack = self.ahead.popleft()
        self._pass_viewed()
        pack.viewers += 1
        self.viewed = pack
        self.ahead.extendleft(reversed(pack.open()))
        return 0

    cdef int _pass_viewed(self) except -1:
        if self.viewed is not None:
            self.viewed.viewers -= 1
            self.left_open.append(self.viewed)
            self.viewed = None
        return 0


cdef bint _is_gone(object each) noexcept:
    return type(each) is not Pack and (<QueueEntry>each).standing == ARCHIVED

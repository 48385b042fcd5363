"""The head of an incoming link, read or not, and the answers to deliveries that get no taker.

A delivery waits unread in the engine, or its bytes were read, to learn its priority or to clear the session: unread
bytes shut the session's window for all its links.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from router.forwarding.copies cimport Copies
from router.forwarding.tags cimport is_barrier
from router.forwarding.turns cimport USUAL_LEVEL, level_of
from wire.core cimport CHUNK_BYTES, scratch
from wire.delivery cimport pending_now
from wire.proton cimport MODIFIED_STATE, RELEASED_STATE, pn
from recording.records cimport ABORTED, SENDER_LOST

from collections import deque

from router.forwarding.words import UNWRITTEN
from wire.delivery import set_outcome


cdef int release(InletHead head, pn_delivery_t *delivery, size_t size) except -1:
    """Release a delivery that was never written to a taker: the sender may try again."""
    cdef size_t outcome = ABORTED if pn.delivery_aborted(delivery) else RELEASED_STATE
    head.recorder.write_untaken(head.record_level, head.number, size, outcome)
    if not pn.delivery_settled(delivery) and (head.is_transit or is_recalled(delivery)):
        set_outcome(<size_t>delivery, UNWRITTEN)
    elif not pn.delivery_settled(delivery):
        pn.delivery_update(delivery, RELEASED_STATE)
    pn.delivery_settle(delivery)
    # Without other traffic on the connection, nothing else would send the disposition.
    return head.link.endpoint.mark()


cdef bint is_recalled(pn_delivery_t *delivery) noexcept:
    """True if the sending router recalls the delivery (`recall`)."""
    return (
        delivery is not NULL
        and pn.delivery_remote_state(delivery) == RELEASED_STATE
        and not pn.delivery_settled(delivery)
    )


cdef bint is_let_down(pn_delivery_t *delivery) noexcept:
    """True if the sending router lost its own sender, which sends the delivery again: drop this one."""
    return pn.delivery_remote_state(delivery) == MODIFIED_STATE and pn.delivery_settled(delivery)


cdef class ReturnMark:
    """The mark of a delivery that came back."""


cdef int insert_returned(object queue, pn_delivery_t *delivery, bytes message, ReturnMark mark) except -1:
    """Insert before all deliveries that never left, and behind older deliveries that came back."""
    cdef int index = len(queue)
    while index and (len(queue[index - 1]) == 2 or (<ReturnMark>queue[index - 1][2]).place > mark.place):
        index -= 1
    queue.insert(index, (<size_t>delivery, message, mark))
    return 0


cdef ReturnMark returned_at(object queue):
    """Return the mark of the first delivery; None if it never left."""
    return <ReturnMark>queue[0][2] if len(queue[0]) > 2 else None


cdef class InletHead(DeliveryOwner):
    """The head of an inlet; the inlet knows whether its head is under way, and counts its deliveries."""

    cdef bint has_moving(self) noexcept:
        """True if the head is half read, on its way to a taker."""
        raise NotImplementedError

    cdef int count_in(self) except -1:
        raise NotImplementedError

    cdef pn_delivery_t *head_now(self) noexcept:
        """Return the oldest delivery that was not passed on."""
        if self.backlog is not None:
            return <pn_delivery_t *><size_t>self.backlog[0][0]
        return self.link.current_now()

    # Reading ahead
    cdef int read_ahead(self, Copies budget, bint is_pressing) except -1:
        """Read complete, small deliveries out of the engine; beyond the budget release them, or stop.

        Return the number of RELEASED deliveries. They are released only if ``is_pressing``.
        """
        cdef int count = 0
        cdef size_t size
        self.budget = budget
        while self._has_unread():
            size = pending_now(self.link.current_now()) if self.held_head is None else PyBytes_GET_SIZE(self.held_head)
            if not budget.take(size):
                if not is_pressing:
                    break
                count += self._release_current()
                continue
            if self.held_head is None:
                self.held_head = PyBytes_FromStringAndSize(NULL, size)
                if size:
                    self.link.recv_into(PyBytes_AS_STRING(self.held_head), size)
            if self.backlog is None:
                self.backlog = deque()
            self.backlog.append((<size_t>self.link.current_now(), self.held_head))
            self.held_head = None
            self.link.advance_now()
        return count

    cdef bint _has_unread(self) noexcept:
        cdef pn_delivery_t *delivery = self.link.current_now()
        if delivery is NULL:
            return False
        # Deliveries behind a barrier would fill the window as well.
        return self.held_head is not None or self._may_be_read(delivery) or is_barrier(delivery)

    cdef bytes _leave_backlog(self):
        """Remove and return the oldest message that was read ahead."""
        cdef bytes message = self.backlog.popleft()[1]
        self.budget.used_bytes -= PyBytes_GET_SIZE(message)
        if not self.backlog:
            self.backlog = None
        return message

    cdef int forget_read(self) except -1:
        """The link is lost: forget all messages read ahead."""
        self.held_head = None
        while self.backlog is not None:
            self._leave_backlog()
        return 0

    cdef int record_left(self) except -1:
        """The sender leaves: record its deliveries that no taker had yet."""
        cdef pn_delivery_t *delivery
        cdef size_t read = self.link.read_bytes
        if self.link.is_gone or self.link.endpoint.is_freed:
            return 0
        for each in self.backlog or ():
            self._record_lost(<pn_delivery_t *><size_t>each[0], PyBytes_GET_SIZE(each[1]))
        delivery = self.link.current_now()
        if delivery is not NULL and self.has_moving():
            delivery = pn.unsettled_next(delivery)
            read = 0
        while delivery is not NULL:
            self._record_lost(delivery, read + pending_now(delivery))
            delivery = pn.unsettled_next(delivery)
            read = 0
        return 0

    cdef int _record_lost(self, pn_delivery_t *delivery, size_t size) except -1:
        cdef size_t outcome = ABORTED if pn.delivery_aborted(delivery) else SENDER_LOST
        self.count_in()
        return self.recorder.write_untaken(self.record_level, self.number, size, outcome)

    cdef int leave_head(self) except -1:
        """Advance to the next delivery: the head has no bytes to read, or was read ahead."""
        if self.backlog is not None:
            self._leave_backlog()
            return 0
        return self.link.advance_now()

    cdef bytes take_prefix(self):
        """Return the head's bytes read before, and advance the link; None when all bytes are still on the link."""
        if self.backlog is not None:
            return self._leave_backlog()
        message, self.held_head = self.held_head, None
        if message is not None:
            self.link.advance_now()
        return message

    cdef bytes read_rest(self, pn_delivery_t *delivery):
        """Return the rest of the current delivery, for the caller to pop; None if the rest is large or not complete."""
        cdef size_t size = pending_now(delivery)
        cdef bytes rest
        if size > WHOLE_BYTES or pn.delivery_partial(delivery) or pn.delivery_aborted(delivery):
            return None
        rest = PyBytes_FromStringAndSize(NULL, size)
        self.link.recv_into(PyBytes_AS_STRING(rest), size)
        return rest

    cdef int put_back(self, pn_delivery_t *delivery, bytes prefix) except -1:
        """Put back the bytes of a head that were read and went nowhere."""
        raise AssertionError("only anonymous senders' large messages are begun with a part that was read")

    cdef int take_back(self, pn_delivery_t *delivery, bytes message, ReturnMark mark, Copies budget) except -1:
        """Take back a delivery that left, and that no consumer has; the budget already counts ``message``."""
        if self.backlog is None:
            self.backlog = deque()
        self.budget = budget
        return insert_returned(self.backlog, delivery, message, mark)

    cdef ReturnMark returned_head(self):
        """Return the mark of the head if it came back, else None."""
        return returned_at(self.backlog) if self.backlog is not None else None

    cdef int head_level(self) except -1:
        """Return the priority of the message at the head if it is complete and small, else the usual priority."""
        cdef pn_delivery_t *delivery
        if self.backlog is not None:
            return level_of(self.backlog[0][1])
        if self.held_head is None:
            delivery = NULL if self.link.is_gone else self.link.current_now()
            if delivery is NULL or not self._may_be_read(delivery):
                return USUAL_LEVEL
            self.held_head = PyBytes_FromStringAndSize(NULL, pending_now(delivery))
            self.link.recv_into(PyBytes_AS_STRING(self.held_head), PyBytes_GET_SIZE(self.held_head))
            self.held_level = level_of(self.held_head)
        return self.held_level

    cdef bint _may_be_read(self, pn_delivery_t *delivery) noexcept:
        """True if the delivery is unread, complete, and small enough to go on in one piece."""
        if self.has_moving() or self.link.read_bytes or (self.guard is not None and self.guard.has_offended()):
            return False
        if pn.delivery_partial(delivery) or pn.delivery_aborted(delivery):
            return False
        return 0 < pending_now(delivery) <= WHOLE_BYTES

    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0:
        """Return the bytes of the head that are here, read or not."""
        if self.backlog is not None:
            return PyBytes_GET_SIZE(self.backlog[0][1])
        return pending_now(delivery) if self.held_head is None else PyBytes_GET_SIZE(self.held_head)

    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept:
        return pn.delivery_partial(delivery)

    cdef bint is_discarding(self) noexcept:
        """True if the head was partly read and discarded: the rest is discarded too."""
        return not self.has_moving() and self.link.read_bytes > 0 and self.held_head is None

    cdef bint release_head(self) except -1:
        """Answer the head with RELEASED once it was read to its end; False while its end is missing."""
        cdef pn_delivery_t *delivery
        cdef size_t size
        if self.backlog is None:
            return self._release_current()
        delivery = self.head_now()
        size = PyBytes_GET_SIZE(self._leave_backlog())
        self.count_in()
        release(self, delivery, size)
        return True

    cdef bint _release_current(self) except -1:
        cdef pn_delivery_t *delivery = self.link.current_now()
        cdef size_t size
        if delivery is NULL or self.has_moving():
            return False
        while pending_now(delivery):
            self.link.recv_into(scratch, CHUNK_BYTES)
        if pn.delivery_partial(delivery) and not pn.delivery_aborted(delivery):
            return False
        size = self.link.read_bytes
        self.held_head = None
        self.link.advance_now()
        self.count_in()
        release(self, delivery, size)
        return True

    cdef int release_held(self) except -1:
        """Answer every delivery at the head with RELEASED; return their number."""
        cdef int count = 0
        while self.release_head():
            count += 1
        return count

    cdef int release_unsettled(self) except -1:
        """The same, up to the first pre-settled delivery, whose sender would not learn of it; return the number."""
        cdef pn_delivery_t *delivery
        cdef int count = 0
        while (delivery := self.head_now()) is not NULL and not pn.delivery_settled(delivery) and self.release_head():
            count += 1
        return count

    cdef int release_behind_settled(self, Copies budget) except -1:
        """The same, skipping pre-settled deliveries, read ahead as far as there is room; return the number."""
        cdef pn_delivery_t *delivery
        cdef int count = 0, seen
        while self.has_queued():
            self.read_ahead(budget, False)
            seen = len(self.backlog or ())
            for _ in range(seen):
                if pn.delivery_settled(self.head_now()):
                    self.backlog.rotate(-1)
                elif self.release_head():
                    count += 1
            # Large deliveries are not read ahead.
            delivery = self.link.current_now()
            if delivery is NULL or pn.delivery_settled(delivery) or pn.delivery_partial(delivery):
                break
            if self.has_moving() or not self._release_current():
                break
            count += 1
        return count

    cdef int release_recalled(self, Copies budget) except -1:
        """Give back all recalled deliveries; return their number. Deliveries before them are read ahead for that."""
        cdef int count = 0
        while is_recalled(self.head_now()) and self.release_head():
            count += 1
        if not self.has_queued():
            return count
        self.read_ahead(budget, False)
        for _ in range(len(self.backlog or ())):
            if is_recalled(self.head_now()):
                self.release_head()
                count += 1
            else:
                self.backlog.rotate(-1)
        return count

    cdef bint has_queued(self) noexcept:
        """True if a delivery waits here for a taker."""
        return self.backlog is not None or pn.link_queued(self.link.raw) > 0

    @property
    def is_waiting(self):
        return self.has_queued()

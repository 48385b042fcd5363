"""The head of an inlet, its oldest delivery that was not passed on, and the answers to deliveries that get no taker.

A delivery waits unread in the engine, or its bytes were read into memory: to learn the message's priority, or to open
the session's window, since unread bytes shut the window for all links of the session.
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
    """Release and settle a delivery that was never written to a taker, so that its sender may try again.

    The sender hears RELEASED; or UNWRITTEN if it is a router that recalled the delivery, or the router before this one
    on a circuit in transit.
    """
    cdef size_t outcome = ABORTED if pn.delivery_aborted(delivery) else RELEASED_STATE
    head.recorder.write_untaken(head.record_level, head.number, size, outcome)
    if not pn.delivery_settled(delivery) and (head.is_transit or is_recalled(delivery)):
        set_outcome(<size_t>delivery, UNWRITTEN)
    elif not pn.delivery_settled(delivery):
        pn.delivery_update(delivery, RELEASED_STATE)
    pn.delivery_settle(delivery)
    # The endpoint is marked as having output: without other traffic on the connection, nothing else would send the
    # disposition.
    return head.link.endpoint.mark()


cdef bint is_recalled(pn_delivery_t *delivery) noexcept:
    """True if the sending router recalls the delivery, that is, asks for it back by the state RELEASED (`recall`)."""
    return (
        delivery is not NULL
        and pn.delivery_remote_state(delivery) == RELEASED_STATE
        and not pn.delivery_settled(delivery)
    )


cdef bint is_let_down(pn_delivery_t *delivery) noexcept:
    """True if the sender settled the delivery with MODIFIED: a router does so to have the delivery dropped.

    The router lost its own sender, which sends the message again. A client's settled MODIFIED does not mean this.
    """
    return pn.delivery_remote_state(delivery) == MODIFIED_STATE and pn.delivery_settled(delivery)


cdef class ReturnMark:
    """The mark of a delivery that reached no consumer and came back to its inlet.

    The mark has the delivery's place in the order of the inlet's deliveries, and the time until which the delivery may
    come back again.
    """


cdef int insert_returned(object queue, pn_delivery_t *delivery, bytes message, ReturnMark mark) except -1:
    """Insert a returned delivery into backlog ``queue``: before those that never left, behind older returned ones."""
    cdef int index = len(queue)
    while index and (len(queue[index - 1]) == 2 or (<ReturnMark>queue[index - 1][2]).place > mark.place):
        index -= 1
    queue.insert(index, (<size_t>delivery, message, mark))
    return 0


cdef ReturnMark returned_at(object queue):
    """Return the mark of the first delivery in the backlog ``queue``; None if that delivery never left before."""
    return <ReturnMark>queue[0][2] if len(queue[0]) > 2 else None


cdef class InletHead(DeliveryOwner):
    """Base class of an inlet: the deliveries that wait on its incoming link, in the engine or read into a backlog.

    The subclass `Inlet` knows whether the first of them, the head, is under way, and counts deliveries.
    """

    cdef bint has_moving(self) noexcept:
        """True if the inlet's head is on its way to a taker, and was not read to its end."""
        raise NotImplementedError

    cdef int count_in(self) except -1:
        raise NotImplementedError

    cdef pn_delivery_t *head_now(self) noexcept:
        """Return the inlet's oldest delivery that was not passed on to its end, NULL if there is none."""
        if self.backlog is not None:
            return <pn_delivery_t *><size_t>self.backlog[0][0]
        return self.link.current_now()

    # Reading ahead
    cdef int read_ahead(self, Copies budget, bint is_pressing) except -1:
        """Read complete, small deliveries out of the engine into the backlog, to open the session's window.

        Where the budget has no room, deliveries are RELEASED if ``is_pressing``, else reading stops. Return the number
        of released deliveries.
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
        # A barrier is read ahead, too: deliveries behind the barrier would fill the session's window as well.
        return self.held_head is not None or self._may_be_read(delivery) or is_barrier(delivery)

    cdef bytes _leave_backlog(self):
        """Remove and return the oldest message that was read ahead."""
        cdef bytes message = self.backlog.popleft()[1]
        self.budget.used_bytes -= PyBytes_GET_SIZE(message)
        if not self.backlog:
            self.backlog = None
        return message

    cdef int forget_read(self) except -1:
        """Forget all messages read ahead, since the link is lost; their bytes no longer count in the budget."""
        self.held_head = None
        while self.backlog is not None:
            self._leave_backlog()
        return 0

    cdef int record_left(self) except -1:
        """Write records of the waiting deliveries, which are lost with their sender, since no taker had them."""
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
        """Pass over the head, a barrier (which has no bytes to read), so that the next delivery is the head."""
        if self.backlog is not None:
            self._leave_backlog()
            return 0
        return self.link.advance_now()

    cdef bytes take_prefix(self):
        """Return the head's bytes that were read before, and pass over the head; None if no byte was read yet."""
        if self.backlog is not None:
            return self._leave_backlog()
        message, self.held_head = self.held_head, None
        if message is not None:
            self.link.advance_now()
        return message

    cdef bytes read_rest(self, pn_delivery_t *delivery):
        """Return the unread rest of the current delivery, for the caller to `pop` the delivery.

        Return None, with nothing read, if the rest is large or has not arrived to its end.
        """
        cdef size_t size = pending_now(delivery)
        cdef bytes rest
        if size > WHOLE_BYTES or pn.delivery_partial(delivery) or pn.delivery_aborted(delivery):
            return None
        rest = PyBytes_FromStringAndSize(NULL, size)
        self.link.recv_into(PyBytes_AS_STRING(rest), size)
        return rest

    cdef int put_back(self, pn_delivery_t *delivery, bytes prefix) except -1:
        """Put the head back with the bytes that were read of it, since its taker did not get them.

        Only an anonymous producer's inlet can do so.
        """
        raise AssertionError("only anonymous senders' large messages are begun with a part that was read")

    cdef int take_back(self, pn_delivery_t *delivery, bytes message, ReturnMark mark, Copies budget) except -1:
        """Put a delivery that reached no consumer back into the backlog; the budget already counts its message."""
        if self.backlog is None:
            self.backlog = deque()
        self.budget = budget
        return insert_returned(self.backlog, delivery, message, mark)

    cdef ReturnMark returned_head(self):
        """Return the mark of the head if the head came back from its takers, else None."""
        return returned_at(self.backlog) if self.backlog is not None else None

    cdef int head_level(self) except -1:
        """Return the priority in the header of the message at the head; the usual one if it is large or incomplete."""
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
        """True if the delivery is unread, complete, and small enough to be read into memory and go on in one piece."""
        if self.has_moving() or self.link.read_bytes or (self.guard is not None and self.guard.has_offended()):
            return False
        if pn.delivery_partial(delivery) or pn.delivery_aborted(delivery):
            return False
        return 0 < pending_now(delivery) <= WHOLE_BYTES

    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0:
        """Return how many bytes of the head are here, in memory or unread in the engine."""
        if self.backlog is not None:
            return PyBytes_GET_SIZE(self.backlog[0][1])
        return pending_now(delivery) if self.held_head is None else PyBytes_GET_SIZE(self.held_head)

    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept:
        return pn.delivery_partial(delivery)

    cdef bint is_discarding(self) noexcept:
        """True if a part of the head went to a taker that is gone: the rest is to be read and discarded."""
        return not self.has_moving() and self.link.read_bytes > 0 and self.held_head is None

    cdef bint release_head(self) except -1:
        """Answer the head with RELEASED, and remove it; False if there is none, or its end has not arrived."""
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
        """Answer all waiting deliveries with RELEASED, up to one whose end is missing; return their number."""
        cdef int count = 0
        while self.release_head():
            count += 1
        return count

    cdef int release_unsettled(self) except -1:
        """Answer waiting deliveries with RELEASED, up to the first pre-settled one; return their number.

        A pre-settled delivery stays, since its sender would not learn of the release.
        """
        cdef pn_delivery_t *delivery
        cdef int count = 0
        while (delivery := self.head_now()) is not NULL and not pn.delivery_settled(delivery) and self.release_head():
            count += 1
        return count

    cdef int release_behind_settled(self, Copies budget) except -1:
        """Answer all waiting deliveries but the pre-settled ones with RELEASED; return their number.

        To get at deliveries behind a pre-settled one, the latter is read ahead, as far as the budget has room.
        """
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
            # A large delivery is not read ahead. Such a delivery is released while it is the current delivery on the
            # link.
            delivery = self.link.current_now()
            if delivery is NULL or pn.delivery_settled(delivery) or pn.delivery_partial(delivery):
                break
            if self.has_moving() or not self._release_current():
                break
            count += 1
        return count

    cdef int release_recalled(self, Copies budget) except -1:
        """Answer with UNWRITTEN all waiting deliveries that the sending router recalled; return their number.

        Deliveries between the recalled ones are read ahead, as far as the budget has room, and stay.
        """
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
        """True if a delivery waits on this inlet, in memory or in the engine."""
        return self.backlog is not None or pn.link_queued(self.link.raw) > 0

    @property
    def is_waiting(self):
        return self.has_queued()

"""A fan: one delivery of a multicast on its way from an inlet to many takers (outgoing links).

A chunk of the delivery is read only when every taker with an unfinished copy has room for the chunk, so memory is
bounded by one chunk, and the slowest taker sets the pace. When the stall timer of a taker ends, the group gives up the
copy of this taker.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from router.forwarding.ageing cimport has_time_left
from router.forwarding.words cimport UNWRITTEN_WORD, word_of
from wire.core cimport CHUNK_BYTES, scratch
from wire.delivery cimport is_terminal, pending_now
from wire.delivery_address cimport addressed_start
from wire.proton cimport ACCEPTED_STATE, MODIFIED_STATE, REJECTED_STATE, RELEASED_STATE, pn
from recording.decisions cimport DECIDED
from recording.records cimport ABORTED, MANY_COPIES, ONE_COPY, SENDER_LOST, outcome_of

from router.forwarding.words import UNWRITTEN
from wire.delivery import remote_outcome, set_outcome
from wire.outcome import MODIFIED_FAILED


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void *)


cdef int rank_of(size_t state) noexcept:
    """Return the rank of a copy's outcome ``state``; the sender gets the outcome of the copy with the highest rank.

    [multicast outcome: REJECTED > ACCEPTED > MODIFIED > RELEASED]
    """
    if state == REJECTED_STATE:
        return 3
    if state == ACCEPTED_STATE:
        return 2
    return 1 if state == MODIFIED_STATE else 0


@cython.final
@cython.no_gc
cdef class FanCopy(Carrier):
    """One taker's copy of a multicast delivery: the outgoing delivery of a fan at one taker."""

    cdef int send(self, const char *chunk, size_t size) except -1:
        self.taker.link.send_now(chunk, size)
        self.sent_bytes += size
        return 0

    cdef bint is_settled(self) noexcept:
        """True if the sender is known to have settled the delivery; of a large one, only the last byte may tell."""
        cdef Fan fan = self.fan
        return fan is not None and fan.inlet is not None and pn.delivery_settled(fan.incoming)

    cdef int _tell_fan(self, size_t state, object outcome) except -1:
        # The local reference keeps the fan alive in this call: otherwise only the fan's copies do, and the fan lets go
        # of its copies as they finish.
        cdef Fan fan = self.fan
        return fan.on_copy_done(self, state, outcome, False) if fan is not None else 0

    cdef int _tell_unwritten(self) except -1:
        cdef Fan fan = self.fan
        return fan.on_copy_done(self, RELEASED_STATE, None, True) if fan is not None else 0

    cdef int give_up(self) except -1:
        """Abort the copy, since its taker stands still. Other copies go on, and this one counts as MODIFIED."""
        self.abort()
        return self._tell_fan(MODIFIED_STATE, MODIFIED_FAILED)

    cdef int finish(self, bint is_settled) except -1:
        cdef Taker taker = self.taker
        taker.link.finish_now()
        taker.deliveries_out += 1
        taker.end_move()
        self.has_left = True
        if is_settled and taker.wants_outcomes:
            # The producer settled and wants no outcome, but the copy stays unsettled until the consumer gives one: the
            # consumer was promised unsettled deliveries only.
            return self._tell_fan(0, None)
        if is_settled or taker.presettles:
            self.forget()
            self._tell_fan(0 if is_settled else ACCEPTED_STATE, None)
        return 0

    cdef int abort(self) except -1:
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        taker.drop(self)
        taker.link.abort_now(outgoing)
        taker.sync()
        return taker.group.on_copy_aborted()

    cdef int forget(self) except -1:
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        taker.drop(self)
        pn.delivery_settle(outgoing)
        return taker.link.endpoint.mark()

    cdef int on_taker_disposition(self) except -1:
        cdef size_t state = pn.delivery_remote_state(self.outgoing)
        cdef bint is_settled = pn.delivery_settled(self.outgoing)
        cdef bint has_outcome = is_terminal(state), is_unwritten = False
        cdef object outcome = None
        cdef Taker taker = self.taker
        cdef Group group = taker.group
        if not has_outcome and not is_settled:
            return 0
        if state == REJECTED_STATE or state == MODIFIED_STATE:
            outcome = remote_outcome(<size_t>self.outgoing)
        if state == MODIFIED_STATE and taker.cost:
            is_unwritten = word_of(self.outgoing) == UNWRITTEN_WORD
        if not self.has_left:
            if is_settled:
                self.abort()
                self._tell_fan(state if has_outcome else RELEASED_STATE, outcome)
            return 0
        self.forget()
        if is_unwritten:
            group.on_given_back(taker)
            return self._tell_unwritten()
        return self._tell_fan(state if has_outcome else ACCEPTED_STATE, outcome)

    cdef int on_taker_lost(self, bint is_unwritten) except -1:
        # The copy of a lost taker that had only the beginning of a large message counts as in doubt, like a copy that
        # the taker had to its end.
        if is_unwritten and (self.has_left or not self.sent_bytes):
            return self._tell_unwritten()
        return self._tell_fan(MODIFIED_STATE, MODIFIED_FAILED)


cdef Fan start_fan(Inlet inlet, pn_delivery_t *incoming, list takers, bytes prefix, bint is_whole):
    """Start a copy of the incoming delivery at each of ``takers``; return their fan, for the caller to advance.

    ``prefix``: bytes already read from the incoming link, the whole message if ``is_whole``; None: nothing was read.
    """
    cdef Fan fan = Fan.__new__(Fan)
    fan.incoming = incoming
    fan.inlet_number = inlet.number
    fan.record_level = inlet.record_level
    fan.recorder = inlet.recorder
    fan.start_us = fan.recorder.now_us
    fan.counted_us = inlet.came_us
    fan.prefix = prefix
    fan.is_read = prefix is not None and is_whole
    inlet.begun_count += 1
    fan.place = inlet.begun_count
    inlet.hold(fan)
    if not fan.is_read:
        inlet.moving = fan
    fan._begin(takers)
    return fan


@cython.final
@cython.no_gc
cdef class Fan(Carrier):
    """A fan: one incoming delivery of a multicast tied to its outgoing copies.

    ``open_count``: the number of copies without an outcome yet. ``rank``: the highest rank of a copy's outcome so far
    (`rank_of`). ``outcome``: the outcome of that rank, None if the outcome is only a state without details.
    """

    cdef int _begin(self, list takers) except -1:
        cdef Taker taker
        cdef FanCopy copy
        self.copies = []
        # The garbage collector does not track the lists of copies, which may be thousands: their reference cycles end
        # when the ties of the deliveries end.
        PyObject_GC_UnTrack(<void *>self.copies)
        for taker in takers:
            copy = FanCopy.__new__(FanCopy)
            copy.fan = self
            copy.taker_number = taker.number
            copy.outgoing = taker.start()
            taker.hold(copy)
            self.copies.append(copy)
            self.tells_address = self.tells_address or taker.group.is_of_filter
        self.open_count = len(self.copies)
        return 0

    # Sending again
    cdef int keep(self, Copies copies) except -1:
        """Keep the whole message, to be sent again if it reaches no consumer, if the budget has room for it."""
        if copies.take(PyBytes_GET_SIZE(self.prefix)):
            self.kept, self.budget = self.prefix, copies
        return 0

    cdef int forget_kept(self) except -1:
        if self.kept is not None:
            self.budget.used_bytes -= PyBytes_GET_SIZE(self.kept)
            self.kept = self.budget = None
        return 0

    cdef bytes give_kept(self):
        """Return the kept message and drop it here; its bytes count in the budget until the caller takes them off."""
        kept, self.kept, self.budget = self.kept, None, None
        return kept

    cdef bint _goes_again(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef Group group = inlet.group
        if self.was_passed_on or self.kept is None or pn.delivery_settled(self.incoming):
            return False
        return group.take_back(self)

    cdef bint note_taker(self) except -1:
        self._note_unheard()
        return True

    cdef bint goes_to(self, Taker taker) noexcept:
        cdef FanCopy copy
        for copy in self.copies:
            if not copy.is_done and copy.taker is taker:
                return True
        return False

    cdef FanCopy blocked(self):
        """Return an unfinished copy that can take no bytes now, or None if all can.

        The link of such a copy is not writable, or its taker has taken back the credit before the first byte.
        """
        cdef FanCopy copy
        for copy in self.copies:
            if copy.is_done:
                continue
            if not copy.taker.link.is_writable_now() or (not copy.sent_bytes and copy.taker.link.credit_now() <= 0):
                return copy
        return None

    cdef int advance(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef FanCopy blocked
        cdef ssize_t size
        if inlet is None or self.is_done:
            return True
        while True:
            blocked = self.blocked()
            if blocked is not None:
                self._wait_for(blocked.taker, inlet)
                inlet.group.on_blocked(blocked.taker)
                return self.is_read
            if self.prefix is not None:
                if self.prefix:
                    self._send(PyBytes_AS_STRING(self.prefix), PyBytes_GET_SIZE(self.prefix))
                self.prefix = None
            elif not self.is_read and pending_now(self.incoming):
                size = inlet.link.recv_into(scratch, CHUNK_BYTES)
                self._send(scratch, size)
            elif not self.is_read and pn.delivery_aborted(self.incoming):
                self._abort()
                return True
            elif not self.is_read and pn.delivery_partial(self.incoming):
                return False
            if self.prefix is None and (self.is_read or self._is_at_end()):
                self._complete()
                return True

    cdef bint is_unsent(self) noexcept:
        return self.is_read and not self.is_done

    cdef bint read_rest(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef FanCopy blocked = self.blocked()
        cdef Taker taker
        if self.is_read or self.is_done or blocked is None or self.prefix is not None:
            return False
        self.prefix = inlet.read_rest(self.incoming)
        if self.prefix is None:
            return False
        self.is_read = True
        inlet.pop()
        taker = blocked.taker
        taker.link.endpoint.wait(self)
        return True

    cdef int _wait_for(self, Taker taker, Inlet inlet) except -1:
        if self.is_read:
            return taker.link.endpoint.wait(self)
        if pn.delivery_partial(self.incoming):
            return taker.link.endpoint.wait_with_bulk(inlet)
        return taker.link.endpoint.wait(inlet)

    cdef bint _is_at_end(self) noexcept:
        return not pn.delivery_partial(self.incoming) and not pending_now(self.incoming) and not pn.delivery_aborted(
            self.incoming
        )

    cdef int _send(self, char *chunk, size_t size) except -1:
        cdef FanCopy copy
        cdef bytes addressed = None
        if not self.size_bytes and not has_time_left(self.recorder, chunk, size, &self.counted_us):
            # The message expired before its first byte left: all copies are aborted, and the rest of the message is
            # read and discarded.
            self.was_passed_on = True
            self._abort_copies()
        if self.tells_address and not self.size_bytes:
            addressed = self._addressed(chunk, size)
        self.size_bytes += size
        for copy in self.copies:
            if not copy.is_done:
                if addressed is not None and copy.taker.group.is_of_filter:
                    copy.send(PyBytes_AS_STRING(addressed), PyBytes_GET_SIZE(addressed))
                else:
                    copy.send(chunk, size)
        return 0

    cdef bytes _addressed(self, char *chunk, size_t size):
        """Return the delivery's first chunk with the address of the delivery, once for all copies that tell it."""
        cdef Group group = self.inlet.group
        return addressed_start(PyBytes_FromStringAndSize(chunk, size), group.published, group.fills_to)

    cdef int _complete(self) except -1:
        cdef FanCopy copy
        cdef Inlet inlet = self.inlet
        cdef Group group = inlet.group
        cdef bint is_settled = pn.delivery_settled(self.incoming)
        if is_settled:
            self._note_unheard()
        self._end()
        for copy in self.copies:
            if not copy.is_done:
                copy.finish(is_settled)
        self._settle_if_done()
        # If the whole message was read ahead, its inlet did not wait for this fan, and does not look again by itself:
        # the group learns here that takers are free. The consumers of filters are takers of other groups, too.
        return group.on_moved(None) if self.is_read or self.tells_address else 0

    cdef int _note_unheard(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef FanCopy copy
        for copy in self.copies:
            if not copy.is_done:
                inlet.on_unheard(copy.taker)
        return 0

    cdef int _abort(self) except -1:
        self.was_passed_on = True
        self._abort_copies()
        self._end()
        return self._settle_if_done()

    cdef int _abort_copies(self) except -1:
        cdef FanCopy copy
        for copy in self.copies:
            if not copy.is_done:
                copy.is_done = True
                copy.abort()
                copy.fan = None
                if self.record_level:
                    self._record_copy(copy, ABORTED)
        self.copies = []
        self.open_count = 0
        return 0

    cdef int _end(self) except -1:
        cdef Inlet inlet = self.inlet
        self.is_done = True
        return 0 if self.is_read else inlet.pop()

    cdef int on_copy_done(self, FanCopy copy, size_t state, object outcome, bint is_unwritten) except -1:
        cdef int rank = rank_of(state)
        cdef Inlet inlet = self.inlet
        if copy.is_done:
            return 0
        copy.is_done = True
        copy.fan = None
        if self.record_level:
            self._record_copy(copy, state)
        self.open_count -= 1
        self.was_passed_on = self.was_passed_on or not is_unwritten
        if rank > self.rank:
            self.rank, self.outcome = rank, outcome
        if self.is_done:
            self._settle_if_done()
        elif self.is_read:
            self.advance()
        elif inlet is not None:
            inlet.on_room()
        return 0

    cdef int decide(self, unsigned int decision) except -1:
        """Have the delivery's outcome noted in the decision with this number; 0: in none."""
        if decision:
            self.decision = decision
            self.record_level |= DECIDED
        return 0

    cdef int _record(self, size_t outcome) except -1:
        if self.record_level & DECIDED:
            self.recorder.decisions.end(self.decision, self.recorder.now_us, outcome)
            self.record_level &= ~DECIDED
            if not self.record_level:
                return 0
        self.recorder.write(self.record_level, self.start_us, self.size_bytes, self.inlet_number, 0, outcome, MANY_COPIES)
        return 0

    cdef int _record_copy(self, FanCopy copy, size_t outcome) except -1:
        cdef unsigned char level = self.record_level & ~DECIDED
        if not level:
            return 0
        self.recorder.write(
            level, self.start_us, copy.sent_bytes, self.inlet_number, copy.taker_number, outcome, ONE_COPY
        )
        return 0

    cdef int _settle_if_done(self) except -1:
        if self.inlet is None or self.open_count or self._goes_again():
            return 0
        self.forget_kept()
        if not pn.delivery_settled(self.incoming):
            if self.inlet.is_circuit and not self.was_passed_on:
                set_outcome(<size_t>self.incoming, UNWRITTEN)
            elif self.outcome is not None:
                set_outcome(<size_t>self.incoming, self.outcome)
            else:
                pn.delivery_update(self.incoming, ACCEPTED_STATE if self.rank == 2 else RELEASED_STATE)
        self.inlet.link.endpoint.mark()
        return self._settle_incoming()

    cdef int _settle_incoming(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef pn_delivery_t *incoming = self.incoming
        self.forget_kept()
        if self.record_level:
            self._record(outcome_of(incoming))
        inlet.drop(self)
        pn.delivery_settle(incoming)
        inlet.link.endpoint.mark()
        return inlet.on_settled()

    cdef int on_sender_disposition(self) except -1:
        """Settle the producer's delivery without an outcome if the producer settled before the copies had theirs.

        The copies go on. A delivery that was not copied to its end yet is settled only then.
        """
        if self.is_done and pn.delivery_settled(self.incoming):
            self._note_unheard()
            self._settle_incoming()
        return 0

    cdef int on_inlet_lost(self, bint comes_again) except -1:
        self.forget_kept()
        if self.record_level:
            self._record(SENDER_LOST)
        if not self.is_done:
            self._abort_copies()
        return 0

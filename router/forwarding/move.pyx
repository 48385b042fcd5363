"""A move: one delivery on its way from an inlet (an incoming link) to a taker (an outgoing link).

Bytes are copied from the incoming delivery to the outgoing delivery as both links allow; the message is not parsed,
apart from the ttl in its header. Two rules of the engine are kept here: an incoming delivery is never settled before
its end was read, and a partial outgoing delivery ends by abort. A message that was read whole may be kept until its
outcome is known, to be offered to another taker.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from router.forwarding.ageing cimport has_time_left
from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport has_had
from router.forwarding.given_back cimport give_on, tell_said
from router.forwarding.head cimport is_let_down
from router.forwarding.retransmit cimport send_again, tell_lost
from router.forwarding.words cimport LOST_WORD, TOO_LARGE_WORD, UNWRITTEN_WORD, Word, word_of
from wire.core cimport CHUNK_BYTES, scratch
from wire.delivery cimport copy_state, is_terminal, pending_now, set_failed
from wire.proton cimport ACCEPTED_STATE, MODIFIED_STATE, RECEIVED_STATE, RELEASED_STATE, pn
from recording.decisions cimport DECIDED, TAKEN_BACK
from recording.records cimport ABORTED, SENDER_LOST, WHOLE_WAY, outcome_of

from router.forwarding.words import TOO_LARGE, UNWRITTEN
from wire.delivery import rejected, remote_outcome, set_outcome
from wire.outcome import MODIFIED_FAILED, RELEASED, UNDELIVERABLE_HERE


cdef enum:
    # Most bytes of a large message that are copied at a time; other deliveries that wait for the same connection go in
    # between.
    PIECE_BYTES = CHUNK_BYTES // 2


cdef object too_large(Inlet inlet, Taker taker):
    """Return the outcome for the sender of a message that is too large for ``taker`` and for all other takers here.

    A router on an anycast circuit hears TOO_LARGE, so that it may try other takers. A broker hears undeliverable-here,
    keeps the message in its queue and does not raise the delivery-count [3.4.5]. A producer hears REJECTED.
    """
    if inlet.is_from_node() and not inlet.is_transit and inlet.group.takes_recalls:
        return TOO_LARGE
    if inlet.is_of_queue():
        return UNDELIVERABLE_HERE
    most = taker.max_message_bytes
    return rejected("amqp:link:message-size-exceeded", f"the consumer takes at most {most} bytes a message")


cdef Move start_refusal(Inlet inlet, pn_delivery_t *incoming, object outcome):
    """Return a move without a taker, which reads and discards all bytes, then answers the sender with ``outcome``."""
    cdef Move move = Move.__new__(Move)
    move.incoming = incoming
    move.outcome = outcome
    move.is_refused = True
    move.recorder = inlet.recorder
    move.start_us = move.recorder.now_us
    move.inlet_number = inlet.number
    move.record_level = inlet.record_level
    inlet.hold(move)
    inlet.moving = move
    return move


cdef Move start_move(Inlet inlet, pn_delivery_t *incoming, Taker taker, pn_delivery_t *outgoing):
    """Return a move that ties the delivery ``incoming`` to ``outgoing``, with no byte copied yet.

    If bytes of the message were read before, the caller sets ``copy`` to the bytes, and ``is_read`` if they are all.
    """
    cdef Move move = Move.__new__(Move)
    move.incoming = incoming
    move.outgoing = outgoing
    move.recorder = inlet.recorder
    move.start_us = move.recorder.now_us
    move.counted_us = inlet.came_us
    move.inlet_number = inlet.number
    move.record_level = inlet.record_level
    move.taker_number = taker.number
    taker.hold(move)
    inlet.hold(move)
    inlet.moving = move
    return move


cdef bint _is_released(pn_delivery_t *incoming) noexcept:
    """True if the sender set the state RELEASED, by which a router recalls a delivery; also after it has settled."""
    return pn.delivery_remote_state(incoming) == RELEASED_STATE


@cython.final
@cython.no_gc
cdef class Move(Carrier):
    """A move: an incoming delivery tied to the outgoing delivery with the same message.

    ``copy``: bytes that were read before they are sent, or the whole message. ``copies``: the budget that counts
    ``copy``, set while the whole message is kept to be offered to another taker, until the outcome is known.
    """

    cdef bint keep(self, Copies copies) noexcept:
        """Keep the copy of the message until the outcome, to offer the delivery again; False if the budget is full."""
        if not copies.take(PyBytes_GET_SIZE(self.copy)):
            return False
        self.copies = copies
        return True

    cdef int forget_copy(self) except -1:
        if self.copies is not None:
            self.copies.used_bytes -= PyBytes_GET_SIZE(self.copy)
            self.copies = None
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None
        if self.is_copy_sent:
            self.copy = None
        return 0

    cdef bint note_taker(self) except -1:
        cdef Inlet inlet = self.inlet
        # A late delivery is at its broker, and has its place there: a later one may take any link.
        if self.taker is None or self.is_late:
            return True
        inlet.on_unheard(self.taker)
        return not self.taker.is_broker

    cdef int advance(self) except -1:
        cdef Taker taker = self.taker
        if taker is None:
            return self._discard()
        if self.has_left:
            return True
        while True:
            if not self.sent_bytes and taker.link.credit_now() <= 0:
                return self._unbegin()
            if taker.max_message_bytes and self._known_bytes() > taker.max_message_bytes:
                return self._turn_away()
            if not taker.link.is_writable_now():
                return self._wait_for_room()
            if self.copy is not None and not self.is_copy_sent:
                if not has_time_left(
                    self.recorder, PyBytes_AS_STRING(self.copy), PyBytes_GET_SIZE(self.copy), &self.counted_us
                ):
                    return self._expire()
                self.is_copy_sent = True
                self._send(PyBytes_AS_STRING(self.copy), PyBytes_GET_SIZE(self.copy))
                if self.copies is None:
                    self.copy = None
            if self.is_read or self._copy_chunk():
                break
            if self.is_expired:
                return self._expire()
            if pn.delivery_aborted(self.incoming):
                self._abort()
                return True
            if self._is_too_large():
                return self._turn_away()
            if not pending_now(self.incoming):
                if pn.delivery_partial(self.incoming):
                    return False
            elif taker.link.endpoint.has_others_waiting(self.inlet):
                # A large message goes one piece at a time: other deliveries that wait for the same connection go before
                # the next piece.
                taker.link.endpoint.wait_with_bulk(self.inlet)
                return False
        self._complete()
        return True

    cdef int _expire(self) except -1:
        """End the delivery, whose message expired before any of it was sent: its sender hears RELEASED.

        If the delivery is in doubt, since an earlier taker that was lost may have it, the sender hears MODIFIED.
        """
        self._give_up_partial(MODIFIED_FAILED if self.is_in_doubt else RELEASED)
        return self.inlet is None

    cdef int _wait_for_room(self) except -1:
        cdef Taker taker = self.taker
        if self.is_read:
            taker.link.endpoint.wait(self)
        elif self.sent_bytes:
            taker.link.endpoint.wait_with_bulk(self.inlet)
        else:
            taker.link.endpoint.wait(self.inlet)
        return self.is_read

    cdef bint _is_too_large(self) noexcept:
        """True if the bytes of the message sent so far exceed the largest message that the taker accepts."""
        return self.taker.max_message_bytes and self.sent_bytes > self.taker.max_message_bytes

    cdef size_t _known_bytes(self) noexcept:
        """Return the number of bytes of the message that have arrived at this router, sent on or not."""
        cdef size_t size = self.sent_bytes
        if self.copy is not None and not self.is_copy_sent:
            size += PyBytes_GET_SIZE(self.copy)
        if not self.is_read and self.inlet is not None:
            size += pending_now(self.incoming)
        return size

    cdef int _turn_away(self) except -1:
        """Abort the outgoing delivery, since its message is larger than the taker accepts, and tell the sender why.

        Return the same as `advance`: True if the incoming link may begin its next delivery.
        """
        if self.inlet is None:
            self._abort_outgoing()
            return True
        self.is_too_large = True
        self._give_up_partial(too_large(self.inlet, self.taker))
        return self.inlet is None

    cdef int _on_too_large_there(self) except -1:
        """Handle the answer TOO_LARGE of a circuit: no consumer at its egress takes a message of this size.

        Another taker gets the copy, if there is one; else the sender hears that the message is too large.
        """
        cdef Inlet inlet = self.inlet
        if inlet is not None and self.copies is not None and self._is_retried():
            return 0
        self._settle_outgoing()
        if inlet is None:
            return 0
        self.is_too_large = True
        if inlet.is_edge:
            self._give(TOO_LARGE)
        elif inlet.is_of_queue():
            self._give(UNDELIVERABLE_HERE)
        else:
            self._give(rejected("amqp:link:message-size-exceeded", "the message is too large for every consumer"))
        return 0

    cdef int _unbegin(self) except -1:
        """Take the delivery back from its taker, which revoked the credit before a byte was written.

        A delivery that was read to its end is offered to another taker, or RELEASED; any other delivery goes back to
        the head of its inlet.
        """
        cdef Inlet inlet = self.inlet
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        cdef pn_delivery_t *incoming
        taker.drop(self)
        taker.link.abort_now(outgoing)
        taker.sync()
        self.end_decision(TAKEN_BACK)
        if inlet is None:
            return True
        if self.is_read:
            if self.copy is None or not inlet.group.retry(self):
                self.settle_incoming(0 if pn.delivery_settled(self.incoming) else RELEASED_STATE)
            return True
        incoming = self.incoming
        inlet.drop(self)
        inlet.return_to_line(self.counted_us)
        if self.copy is not None:
            inlet.put_back(incoming, self.copy)
        inlet.group.on_returned_unread(inlet)
        return False

    cdef int _send(self, const char *chunk, size_t size) except -1:
        self.sent_bytes += size
        return self.taker.link.send_now(chunk, size)

    cdef int _copy_chunk(self) except -1:
        """Copy one piece of the message to the taker; True if it was the last piece of a complete delivery.

        False also if the taker has got too many bytes, or the message has expired (``is_expired``).
        """
        cdef ssize_t size
        if pending_now(self.incoming):
            size = self.inlet.link.recv_into(scratch, PIECE_BYTES)
            if not self.sent_bytes and not has_time_left(self.recorder, scratch, max(size, 0), &self.counted_us):
                self.is_expired = True
                return False
            self._send(scratch, size)
            if pending_now(self.incoming):
                return False
        if pn.delivery_partial(self.incoming) or pn.delivery_aborted(self.incoming):
            return False
        return not self._is_too_large()

    cdef bint is_unsent(self) noexcept:
        return self.is_read and self.taker is not None and not self.has_left

    cdef bint read_rest(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef Taker taker = self.taker
        if self.is_read or taker is None or self.copy is not None:
            return False
        self.copy = inlet.read_rest(self.incoming)
        if self.copy is None:
            return False
        self.is_read = True
        inlet.pop()
        taker.link.endpoint.wait(self)
        return True

    cdef int _complete(self) except -1:
        cdef Inlet inlet = self.inlet
        cdef Taker taker = self.taker
        cdef bint is_settled = inlet is not None and pn.delivery_settled(self.incoming)
        if taker.on_sending is not None and taker.is_stream:
            taker.on_sending()
        taker.link.finish_now()
        self.has_left = True
        taker.end_move()
        taker.deliveries_out += 1
        if inlet is not None and not self.is_read:
            inlet.pop()
        if is_settled and taker.wants_outcomes:
            # The producer of this pre-settled delivery asks for no outcome, but the delivery stays unsettled: a
            # broker's outcome tells when the next delivery may take another link, and a consumer was promised
            # unsettled deliveries only.
            return taker.group.on_moved(taker)
        if taker.presettles or is_settled:
            if is_settled:
                inlet.on_unheard_settled(taker)
            self._settle(0 if inlet is None or is_settled else ACCEPTED_STATE)
        return taker.group.on_moved(taker)

    # Settling
    cdef int _settle(self, size_t state) except -1:
        """Settle the outgoing and the incoming delivery, the latter with ``state``; 0: with the state set before."""
        if self.taker is not None:
            self._settle_outgoing()
        if self.inlet is not None:
            self.settle_incoming(state)
        return 0

    cdef int _settle_outgoing(self) except -1:
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        taker.drop(self)
        pn.delivery_settle(outgoing)
        return taker.link.endpoint.mark()

    cdef int settle_incoming(self, size_t state) except -1:
        cdef Inlet inlet = self.inlet
        cdef pn_delivery_t *incoming = self.incoming
        if inlet is None:
            return 0
        self.forget_copy()
        if state == MODIFIED_STATE:
            set_failed(incoming)
        elif state:
            pn.delivery_update(incoming, state)
        inlet.link.endpoint.mark()
        inlet.drop(self)
        if self.record_level:
            self._record(state or outcome_of(incoming))
        pn.delivery_settle(incoming)
        return inlet.on_settled()

    cdef int decide(self, unsigned int decision) except -1:
        """Have the delivery's outcome noted in the decision with this number; 0: in none."""
        if decision:
            self.decision = decision
            self.record_level |= DECIDED
        return 0

    cdef int end_decision(self, size_t outcome) except -1:
        """Note the outcome in the decision about the delivery, if there is one."""
        if self.decision:
            self.recorder.decisions.end(self.decision, self.recorder.now_us, outcome)
            self.decision = 0
            self.record_level &= ~DECIDED
        return 0

    cdef int _record(self, size_t outcome) except -1:
        if self.record_level & DECIDED:
            self.end_decision(outcome)
            if not self.record_level:
                return 0
        self.recorder.write(
            self.record_level, self.start_us, self.sent_bytes, self.inlet_number, self.taker_number, outcome, WHOLE_WAY
        )
        return 0

    cdef int _abort(self) except -1:
        """Abort the delivery at the taker, since the sender aborted the delivery.

        Both ends drop the move before the group learns that the ends are free for other deliveries.
        """
        cdef Inlet inlet = self.inlet
        cdef Taker taker = self.taker
        cdef pn_delivery_t *incoming = self.incoming
        cdef pn_delivery_t *outgoing = self.outgoing
        self.forget_copy()
        if self.record_level:
            self._record(ABORTED)
        inlet.drop(self)
        if taker is not None:
            taker.drop(self)
            taker.link.abort_now(outgoing)
            taker.sync()
        inlet.pop()
        if not inlet.link.is_gone:
            pn.delivery_settle(incoming)
            inlet.link.endpoint.mark()
        inlet.on_settled()
        return taker.group.on_moved(taker) if taker is not None else 0

    cdef int _abort_outgoing(self) except -1:
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        taker.drop(self)
        taker.link.abort_now(outgoing)
        taker.sync()
        return taker.group.on_moved(taker)

    cdef int _discard(self) except -1:
        """Read and discard the rest of the delivery, which has no taker, then answer its sender with ``outcome``.

        Return the same as `advance`: True if the incoming link may begin its next delivery.
        """
        cdef Inlet inlet = self.inlet
        if inlet is None:
            return True
        if self.is_read:
            if self.is_refused:
                self._give(self.outcome)
            return True
        while pending_now(self.incoming):
            self.sent_bytes += inlet.link.recv_into(scratch, CHUNK_BYTES)
        if pn.delivery_partial(self.incoming) and not pn.delivery_aborted(self.incoming):
            return False
        inlet.pop()
        self._give(self.outcome)
        return True

    def _give(self, outcome):
        cdef Inlet inlet = self.inlet
        cdef size_t size = self.sent_bytes
        if inlet is not None:
            if self.copy is not None:
                size = max(size, <size_t>PyBytes_GET_SIZE(self.copy))
            if not pn.delivery_settled(self.incoming):
                set_outcome(<size_t>self.incoming, outcome)
            self.settle_incoming(0)
            if self.is_too_large and inlet.is_of_queue():
                inlet.group.on_too_large(inlet, size)

    # Methods that handle the dispositions of the two peers, the taker's receiver and the sender.
    cdef int on_taker_disposition(self) except -1:
        """Pass the state and the settlement that the taker's receiver gave on to the sender, both unchanged.

        Exceptions are deliveries that are offered to another taker, words between routers (`router.forwarding.words`),
        and deliveries in doubt, whose sender hears MODIFIED in place of RELEASED.
        """
        cdef size_t state = pn.delivery_remote_state(self.outgoing)
        cdef bint is_over = pn.delivery_settled(self.outgoing)
        cdef Word word
        if not self.has_left:
            if is_over:
                self._give_up_partial(remote_outcome(<size_t>self.outgoing) or RELEASED)
            return 0
        if self.comes_again and is_terminal(state):
            return self._let_down()
        # If this router need not wait until the sender settles, it settles at once when the receiver gave an outcome.
        # [2.8.3]
        if not is_over and is_terminal(state):
            is_over = self.settles_first()
        if self.copies is not None and state == RELEASED_STATE and self._is_retried():
            return 0
        if state == MODIFIED_STATE and self.taker.cost:
            word = word_of(self.outgoing)
            if word == TOO_LARGE_WORD and not (self.inlet is not None and self.inlet.is_circuit):
                return self._on_too_large_there()
            if word == UNWRITTEN_WORD or word == LOST_WORD:
                return self._on_unwritten() if word == UNWRITTEN_WORD else self._on_lost()
        if state == MODIFIED_STATE or (self.said is not None and state == RELEASED_STATE):
            if self._is_of_shared_queue() and give_on(self, is_over):
                return 0
        if state == RECEIVED_STATE and not is_over and self.inlet is not None and self.inlet.group.may_be_full:
            return self._on_late()
        if self.is_in_doubt and state == RELEASED_STATE:
            self._settle_outgoing()
            return self.settle_incoming(MODIFIED_STATE)
        if self.inlet is not None:
            copy_state(self.outgoing, self.incoming)
            self.inlet.link.endpoint.mark()
        if is_over:
            self._settle(0)
        return 0

    cdef int _on_late(self) except -1:
        """Note, and tell a router, that the queue of this delivery is full, and that the delivery waits at the broker.

        Deliveries that waited until the broker has this one may go on.
        """
        cdef Inlet inlet = self.inlet
        self.is_late = True
        if not inlet.on_late(self):
            copy_state(self.outgoing, self.incoming)
            inlet.link.endpoint.mark()
        return inlet.on_settled()

    cdef bint _is_of_shared_queue(self) noexcept:
        """True if the message comes from a sharded queue, whose consumers here share one link from each broker."""
        return self.inlet is not None and self.inlet.group.is_of_queue and self.inlet.group.takes_recalls

    cdef int _let_down(self) except -1:
        """Settle with MODIFIED, delivery-failed, at the taker: the sender is lost, and sends the message again. [3.4.5]

        A router at the other end of the taker drops the delivery then. A delivery that was written in part is aborted.
        """
        if self._is_partly_buffered():
            # The engine sends a state together with the first frame of a delivery only, and that frame is gone: without
            # the abort the delivery would end as a valid one.
            return self._abort_outgoing()
        if not pn.delivery_settled(self.outgoing):
            set_failed(self.outgoing)
        return self._settle_outgoing()

    cdef int _on_let_down(self) except -1:
        """Have the taker drop the delivery: the sending router has lost its own sender, which sends the message again.

        A taker that is a router, or has given an outcome, is told at once; a consumer without an outcome is told when
        it gives one; a broker is not told. A delivery that has not left whole is aborted.
        """
        cdef Inlet inlet = self.inlet
        cdef bint is_answered = is_terminal(pn.delivery_remote_state(self.outgoing))
        if not self.has_left:
            return self._give_up_partial(MODIFIED_FAILED)
        if self.taker.is_broker:
            return 0  # until the broker gives an outcome
        if not is_answered:
            inlet.on_unheard_settled(self.taker)
        if is_answered or self.taker.cost or inlet.is_transit or self._is_partly_buffered():
            self._let_down()
        else:
            # A consumer has the delivery, or will have it: this router waits for the consumer's outcome, and then
            # settles with MODIFIED, delivery-failed. If the delivery were settled before its first frame was written,
            # it would arrive pre-settled.
            self.comes_again = True
        return self.settle_incoming(0)

    cdef bint _is_partly_buffered(self) noexcept:
        """True if the engine has written a part of the delivery's sent bytes to the connection, and not all."""
        return pn.delivery_buffered(self.outgoing) and pn.delivery_pending(self.outgoing) < self.sent_bytes

    cdef bint settles_first(self) noexcept:
        return self.inlet is None or not self.inlet.is_second() or pn.delivery_settled(self.incoming)

    # Another taker
    cdef bint may_be_given_back(self) noexcept:
        return self.inlet is not None and self.inlet.is_of_queue() and not self.is_answered()

    cdef bint may_be_recalled(self) noexcept:
        return self.has_left and self.inlet is not None and not self.is_answered()

    cdef bint suits(self, Taker taker):
        """True if ``taker`` may have the inlet's deliveries, accepts this one's size, and has not had this one yet."""
        cdef size_t size = self.sent_bytes if self.copy is None else PyBytes_GET_SIZE(self.copy)
        cdef Inlet inlet = self.inlet
        if not inlet.may_feed(taker) or (taker.max_message_bytes and size > taker.max_message_bytes):
            return False
        return self.tried is None or not has_had(self.tried, taker)

    cdef int _on_unwritten(self) except -1:
        self.is_untried = True
        if self._is_recalled() or self.copies is None or not self._is_retried():
            self._settle_outgoing()
            self._give_back_unwritten()
        return 0

    cdef int _give_back_unwritten(self) except -1:
        """Give the delivery, which no consumer had, back to its sender.

        A router that recalled the delivery hears UNWRITTEN, any other sender RELEASED. If the delivery is in doubt,
        since an earlier taker was lost with it, the sender hears MODIFIED.
        """
        if self.is_in_doubt or not self._is_recalled():
            return self.settle_incoming(self._state_if_nobody())
        set_outcome(<size_t>self.incoming, UNWRITTEN)
        return self.settle_incoming(0)

    cdef bint _is_recalled(self) noexcept:
        cdef Inlet inlet = self.inlet
        return inlet is not None and inlet.group.takes_recalls and inlet.is_from_node() and _is_released(self.incoming)

    cdef int _on_lost(self) except -1:
        """Send the copy again, or tell the sender, since a router on the circuit lost its taker with the delivery."""
        if not send_again(self):
            if self.taker is not None:
                self._settle_outgoing()
            if self.inlet is not None:
                tell_lost(self)
        return 0

    cdef size_t _state_if_nobody(self) noexcept:
        """Return the state for the sender when no consumer takes the message: RELEASED, or MODIFIED if in doubt."""
        return MODIFIED_STATE if self.is_in_doubt else RELEASED_STATE

    cdef bint _is_retried(self) except -1:
        """Offer the delivery, which its taker gave back, to another taker, now or later.

        Return False if no other taker may have the delivery: the caller tells its sender.
        """
        cdef Inlet inlet = self.inlet
        if inlet is None or pn.delivery_settled(self.incoming) or self.is_answered():
            return False
        if self.tried is None:
            self.tried = []
        if not self.is_untried:
            self.tried.append(self.taker)
        return inlet.group.retry(self)

    cdef bint is_answered(self) noexcept:
        """True if this router has already given the sender an outcome."""
        return is_terminal(pn.delivery_local_state(self.incoming))

    cdef int offer(self, Taker taker) except -1:
        """Settle the outgoing delivery at the previous taker, if any, and send the copy to ``taker``."""
        if self.taker is not None:
            self._settle_outgoing()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.has_left = self.is_copy_sent = self.is_untried = self.is_late = False
        self.sent_bytes = 0
        self.outgoing = taker.start()
        self.taker_number = taker.number
        taker.hold(self)
        return self.advance()

    cdef int let_go(self) except -1:
        """Settle the outgoing delivery at its taker, which gave it back or was lost; no other taker has it yet."""
        return self._settle_outgoing()

    cdef int give_back(self) except -1:
        """Answer the sender of the delivery, which no taker takes: RELEASED, or the consumers' joint outcome.

        If the delivery is in doubt, the sender hears MODIFIED.
        """
        cdef Inlet inlet = self.inlet
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if inlet is not None and self.taker is None:
            if tell_said(self):
                group = inlet.group
                group.on_undeliverable(inlet)
                return self.settle_incoming(0)
            self.settle_incoming(0 if pn.delivery_settled(self.incoming) else self._state_if_nobody())
        return 0

    @property
    def is_waiting(self):
        """True if a taker gave the delivery back or was lost with it, and no other taker has it yet."""
        return self.inlet is not None and not self.inlet.is_lost and self.taker is None and self.copy is not None

    cdef int _give_up_partial(self, object outcome) except -1:
        """Abort the outgoing delivery, and answer the sender with ``outcome`` once the rest was read and discarded."""
        cdef Inlet inlet = self.inlet
        self.outcome = outcome
        if self.taker is not None:
            self._abort_outgoing()
        if inlet is not None:
            if self.is_read:
                self._give(outcome)
            else:
                inlet.on_room()
        return 0

    cdef int on_sender_disposition(self) except -1:
        """Tell the taker's receiver that the sender gave a state or settled, perhaps after the outcome. [2.6.12]"""
        cdef Inlet inlet = self.inlet
        cdef bint is_client = inlet.is_from_client()
        if self.taker is None and (self.has_left or self.is_read) and pn.delivery_settled(self.incoming):
            return self.settle_incoming(0)
        if self.taker is None:
            return 0
        if is_let_down(self.incoming) and not is_client:
            return self._on_let_down()
        if not self.has_left:
            return 0
        # If the sender is a client, its settled MODIFIED is not passed on: routers on the path would take the outcome
        # for that of a router that lost its sender, and drop the delivery. A recall is not passed on here either.
        if not self._is_recalled() and not (is_client and is_let_down(self.incoming)):
            copy_state(self.incoming, self.outgoing)
        self.taker.link.endpoint.mark()
        if pn.delivery_settled(self.incoming):
            if not is_terminal(pn.delivery_remote_state(self.outgoing)):
                if self.taker.wants_outcomes:
                    return 0  # until the taker gives an outcome
                inlet.on_unheard_settled(self.taker)
            self._settle(0)
        return 0

    cdef int on_inlet_lost(self, bint comes_again) except -1:
        """Abort the delivery at the taker, since the sender is lost, unless the whole delivery has left this router.

        A delivery that is all here, and that the sender does not send again, goes on instead. Routers on the path hear
        at once of a delivery that has left and comes again, so that no consumer gets it twice.
        """
        cdef size_t answer
        cdef bint is_answered
        self.forget_copy()
        if self.record_level:
            self._record(SENDER_LOST)
        if self.taker is None:
            return 0
        if not self.has_left:
            return 0 if self.is_read and not comes_again else self._abort_outgoing()
        self.comes_again = comes_again
        answer = pn.delivery_remote_state(self.outgoing)
        is_answered = is_terminal(answer)
        if comes_again and (is_answered or self.taker.cost or self._is_partly_buffered()):
            self._let_down()
        elif is_answered:
            self._settle_outgoing()
        return 0

    cdef int on_taker_lost(self, bint is_unwritten) except -1:
        """Offer the delivery, whose taker is lost, to another taker, or release the delivery, if it was not written.

        The same holds for a delivery that was given back. A written delivery is in doubt: the delivery is sent again if
        the address has ``retransmit``, else its sender hears MODIFIED, delivery-failed.
        """
        cdef Inlet inlet = self.inlet
        self.outcome = RELEASED if is_unwritten else MODIFIED_FAILED
        if inlet is None:
            return 0
        if self.has_left and self.is_answered():
            # The sender has the taker's outcome already, which stands: only the sender's delivery has to be settled.
            return self.settle_incoming(0)
        if self.copies is not None and is_unwritten and inlet.group.retry(self):
            return 0
        if not is_unwritten and send_again(self):
            return 0
        if self.has_left or self.is_read:
            return self.settle_incoming(self._state_if_nobody()) if is_unwritten else tell_lost(self)
        return inlet.on_room()

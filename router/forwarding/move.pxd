from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.head cimport WHOLE_BYTES
from wire.proton cimport pn_delivery_t
from recording.records cimport Recorder


cdef class Move(Carrier):
    cdef bytes copy
    cdef bint is_copy_sent
    cdef bint is_read
    cdef Copies copies
    cdef bint has_left
    cdef bint is_refused
    # True if the message is larger than its taker accepts, and goes back.
    cdef bint is_too_large
    cdef size_t sent_bytes
    cdef unsigned long long start_us
    # Time in us from which on the ttl in the header counts, and whether the message expired before any part of it left.
    cdef unsigned long long counted_us
    cdef bint is_expired
    cdef Recorder recorder
    cdef unsigned int inlet_number
    cdef unsigned char record_level
    cdef unsigned int taker_number  # of the last taker
    # The number of the last decision about the delivery in the decision record; 0 if it is not recorded.
    cdef unsigned int decision
    cdef object outcome
    cdef list tried
    # Joint outcome of a queue's consumers that returned the message; None if no consumer did.
    cdef object said
    # True if the delivery came back, and its taker had not written it.
    cdef bint is_untried
    # True if the delivery waits at its broker for room in its queue; the address of the queue, if the inlet noted it.
    cdef bint is_late
    cdef bytes named
    # True if an earlier taker of the delivery is lost.
    cdef bint is_in_doubt
    # True if the sender is lost and not a client, so that the message may come again over another link.
    cdef bint comes_again
    cdef object timer

    cdef bint keep(self, Copies copies) noexcept
    cdef int forget_copy(self) except -1
    cdef int _copy_chunk(self) except -1
    cdef int _send(self, const char *chunk, size_t size) except -1
    cdef int _expire(self) except -1
    cdef int _wait_for_room(self) except -1
    cdef bint _is_too_large(self) noexcept
    cdef size_t _known_bytes(self) noexcept
    cdef int _turn_away(self) except -1
    cdef int _on_too_large_there(self) except -1
    cdef int _unbegin(self) except -1
    cdef int _on_late(self) except -1
    cdef bint _is_of_shared_queue(self) noexcept
    cdef int _let_down(self) except -1
    cdef int _on_let_down(self) except -1
    cdef bint _is_partly_buffered(self) noexcept
    cdef bint settles_first(self) noexcept
    cdef int _complete(self) except -1
    cdef int _settle(self, size_t state) except -1
    cdef int settle_incoming(self, size_t state) except -1
    cdef int _settle_outgoing(self) except -1
    cdef int _record(self, size_t outcome) except -1
    cdef int decide(self, unsigned int decision) except -1
    cdef int end_decision(self, size_t outcome) except -1
    cdef int _abort(self) except -1
    cdef int _abort_outgoing(self) except -1
    cdef int _discard(self) except -1
    cdef int _give_up_partial(self, object outcome) except -1
    cdef bint may_be_recalled(self) noexcept
    cdef bint suits(self, Taker taker)
    cdef int _on_unwritten(self) except -1
    cdef bint _is_retried(self) except -1
    cdef bint is_answered(self) noexcept
    cdef int _give_back_unwritten(self) except -1
    cdef bint _is_recalled(self) noexcept
    cdef int _on_lost(self) except -1
    cdef size_t _state_if_nobody(self) noexcept
    cdef int let_go(self) except -1
    cdef int offer(self, Taker taker) except -1
    cdef int give_back(self) except -1


cdef object too_large(Inlet inlet, Taker taker)
cdef Move start_refusal(Inlet inlet, pn_delivery_t *incoming, object outcome)
cdef Move start_move(Inlet inlet, pn_delivery_t *incoming, Taker taker, pn_delivery_t *outgoing)

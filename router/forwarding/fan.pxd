from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from wire.proton cimport pn_delivery_t
from recording.records cimport Recorder


cdef class FanCopy(Carrier):
    cdef Fan fan
    cdef bint has_left
    cdef bint is_done
    cdef unsigned int taker_number
    cdef size_t sent_bytes

    cdef int send(self, const char *chunk, size_t size) except -1
    cdef bint is_settled(self) noexcept
    cdef int _tell_fan(self, size_t state, object outcome) except -1
    cdef int _tell_unwritten(self) except -1
    cdef int give_up(self) except -1
    cdef int finish(self, bint is_settled) except -1
    cdef int abort(self) except -1
    cdef int forget(self) except -1


cdef class Fan(Carrier):
    cdef list copies
    # The whole message, as long as the delivery may have to be sent again; its bytes count in ``budget``.
    cdef bytes kept
    cdef Copies budget
    # The delivery's place among those of its inlet, and the time until which a returned delivery may be sent again.
    cdef unsigned long long place
    cdef double until_s
    # True if a taker may have received the delivery, or was left out.
    cdef bint was_passed_on
    cdef int open_count
    cdef bytes prefix
    cdef bint is_read
    cdef bint is_done
    # True if a copy goes to the consumer of a filter, who is told the address.
    cdef bint tells_address
    cdef object outcome
    cdef int rank
    cdef Recorder recorder
    cdef unsigned int inlet_number
    cdef unsigned char record_level
    # The number of the decision about the delivery in the decision record; 0 if it is not recorded.
    cdef unsigned int decision
    cdef unsigned long long start_us
    # Time in us from which on the ttl in the header counts.
    cdef unsigned long long counted_us
    cdef size_t size_bytes

    cdef FanCopy blocked(self)
    cdef int _begin(self, list takers) except -1
    cdef int _send(self, char *chunk, size_t size) except -1
    cdef bytes _addressed(self, char *chunk, size_t size)
    cdef int _wait_for(self, Taker taker, Inlet inlet) except -1
    cdef bint _is_at_end(self) noexcept
    cdef int _complete(self) except -1
    cdef int _note_unheard(self) except -1
    cdef int _abort(self) except -1
    cdef int _abort_copies(self) except -1
    cdef int _end(self) except -1
    cdef int keep(self, Copies copies) except -1
    cdef int forget_kept(self) except -1
    cdef bytes give_kept(self)
    cdef int on_copy_done(self, FanCopy copy, size_t state, object outcome, bint is_unwritten) except -1
    cdef bint _goes_again(self) except -1
    cdef int _record(self, size_t outcome) except -1
    cdef int decide(self, unsigned int decision) except -1
    cdef int _record_copy(self, FanCopy copy, size_t outcome) except -1
    cdef int _settle_if_done(self) except -1
    cdef int _settle_incoming(self) except -1


cdef Fan start_fan(Inlet inlet, pn_delivery_t *incoming, list takers, bytes prefix, bint is_whole)

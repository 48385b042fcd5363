from router.forwarding.copies cimport Copies
from router.forwarding.guard cimport Guard
from wire.core cimport CHUNK_BYTES, DeliveryOwner, IncomingCore
from wire.proton cimport pn_delivery_t
from recording.records cimport Recorder

cdef enum:
    # Size up to which a complete delivery goes over shared links: the router can read it without holding up others.
    WHOLE_BYTES = 4 * CHUNK_BYTES


cdef class ReturnMark:
    """Marks a returned delivery with its place among the inlet's deliveries, and the time until which it may return
    again.
    """

    cdef unsigned long long place
    cdef double until_s


cdef class InletHead(DeliveryOwner):
    cdef readonly Recorder recorder
    cdef readonly unsigned int number
    # The record level of the deliveries here (`recording.records`).
    cdef public unsigned char record_level
    cdef readonly IncomingCore link
    # True for a circuit in transit, for which a delivery that was not written counts as not tried by any taker.
    cdef public bint is_transit
    cdef Guard guard
    # The bytes of the message at the head, read early to learn its priority while the message is still current on the
    # link.
    cdef bytes held_head
    cdef int held_level
    # Messages before those on the link, read out of the engine whole: a deque of (delivery, bytes), with a `ReturnMark`
    # for a message that came back; None when empty.
    cdef object backlog
    cdef Copies budget

    cdef bint has_moving(self) noexcept
    cdef int count_in(self) except -1
    cdef int forget_read(self) except -1
    cdef pn_delivery_t *head_now(self) noexcept
    cdef bytes take_prefix(self)
    cdef int read_ahead(self, Copies budget, bint is_pressing) except -1
    cdef bytes _leave_backlog(self)
    cdef int record_left(self) except -1
    cdef int _record_lost(self, pn_delivery_t *delivery, size_t size) except -1
    cdef int leave_head(self) except -1
    cdef bint _has_unread(self) noexcept
    cdef bint _release_current(self) except -1
    cdef bytes read_rest(self, pn_delivery_t *delivery)
    cdef int put_back(self, pn_delivery_t *delivery, bytes prefix) except -1
    cdef int take_back(self, pn_delivery_t *delivery, bytes message, ReturnMark mark, Copies budget) except -1
    cdef ReturnMark returned_head(self)
    cdef int head_level(self) except -1
    cdef bint _may_be_read(self, pn_delivery_t *delivery) noexcept
    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0
    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept
    cdef bint is_discarding(self) noexcept
    cdef bint release_head(self) except -1
    cdef int release_held(self) except -1
    cdef int release_unsettled(self) except -1
    cdef int release_behind_settled(self, Copies budget) except -1
    cdef int release_recalled(self, Copies budget) except -1
    cdef bint has_queued(self) noexcept


cdef int insert_returned(object queue, pn_delivery_t *delivery, bytes message, ReturnMark mark) except -1
cdef ReturnMark returned_at(object queue)
cdef bint is_recalled(pn_delivery_t *delivery) noexcept
cdef bint is_let_down(pn_delivery_t *delivery) noexcept
cdef int release(InletHead head, pn_delivery_t *delivery, size_t size) except -1

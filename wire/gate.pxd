from wire.codec.composites cimport Fault, Fields
from wire.codec.scan cimport Scan
from wire.proton cimport pn_transport_t


cdef class PeerSession:
    # Its links by handle; those with large handles in ``far``.
    cdef readonly unsigned int channel
    cdef int answered_channel
    cdef list near
    cdef dict far
    # As the peer's transfers and flows count. [2.5.6]
    cdef unsigned int next_incoming_id
    cdef unsigned int window_end

    cdef PeerLink link_at(self, unsigned int handle)
    cdef int put(self, PeerLink link) except -1
    cdef int drop(self, unsigned int handle) except -1


cdef class PeerLink:
    # What the peer said of a link, from its attach to its detach.
    cdef readonly bytes name
    cdef readonly bint is_sender
    cdef readonly unsigned int handle
    cdef readonly PeerSession session
    # A delivery began, and its last transfer is to come.
    cdef bint is_partial
    cdef readonly unsigned int delivery_count
    # Delivery-count and credit of its last flow together: so far may the other side send. [2.6.7]
    cdef readonly unsigned int credit_end
    cdef public bint wants_flow
    # It was attached again elsewhere: what still comes for it is not for the engine.
    cdef bint is_stolen
    # What its sender did that cannot be done: the link is to be ended with it.
    cdef readonly object fault


cdef class Gate:
    cdef pn_transport_t *transport
    cdef readonly object fault
    # Links in the order of their attaches, for who hears of these from the engine.
    cdef readonly list attached
    # Links whose peer asked for a flow, or broke a rule.
    cdef readonly list restless
    cdef unsigned int max_frame_bytes
    cdef unsigned int channel_max
    cdef unsigned int header_left
    cdef bint is_open
    cdef readonly bint is_open_made_up
    cdef bint is_closed
    # Of a frame that is not all here.
    cdef unsigned char *held
    cdef size_t held_bytes
    cdef size_t held_room
    cdef list sessions
    cdef dict links
    cdef set answered
    cdef unsigned int stolen_count
    # What the engine is given in place of the frame that was looked at last.
    cdef bytes replacement

    cdef int feed(self, const unsigned char *at, size_t size) except -1
    cdef const unsigned char *_feed_header(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef const unsigned char *_feed_held(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef int _hold(self, const unsigned char *at, size_t size) except -1
    cdef int _give(self, const unsigned char *at, size_t size) except -1
    cdef int _look(self, const unsigned char *frame, size_t size) except -1
    cdef bint _is_plain_transfer(self, const unsigned char *at, const unsigned char *end, unsigned int channel) except -1
    cdef int _look_at_performative(self, const unsigned char *frame, const unsigned char *body, const unsigned char *end) except -1
    cdef PeerSession _session_at(self, unsigned int channel)
    cdef int _blame(self, str condition, str sentence) except -1
    cdef int _on_open(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_begin(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_attach(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1
    cdef int _on_flow(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1
    cdef int _on_transfer(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_disposition(self, Fields *fields) except -1
    cdef int _on_detach(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_end(self, unsigned int channel) except -1
    cdef int _replace(self, bytes replacement) except -1
    cdef int _steal(self, PeerLink old, const unsigned char *frame, size_t size) except -1

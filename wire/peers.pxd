cdef class PeerLink


cdef class PeerSession:
    # Its links by handle; those with large handles in ``far``.
    cdef readonly unsigned int channel
    # Which of our channels it answers with its begin, and which of ours belongs to it. -1: none.
    cdef int answered_channel
    cdef int local_channel
    # The endpoint's session, once it has heard of the begin.
    cdef public object session
    cdef list near
    cdef dict far
    # As the peer's transfers and flows count. [2.5.6]
    cdef unsigned int next_incoming_id
    cdef unsigned int window_end
    # Of the window that we told the peer last.
    cdef unsigned int told_window_end
    cdef bint wants_flow

    cdef PeerLink link_at(self, unsigned int handle)
    cdef int put(self, PeerLink link) except -1
    cdef int drop(self, unsigned int handle) except -1


cdef class PeerLink:
    # What the peer said of a link, from its attach to its detach.
    cdef readonly bytes key
    cdef readonly bint is_sender
    cdef readonly unsigned int handle
    cdef readonly PeerSession session
    # Ours of the same link; -1 before our attach is written.
    cdef readonly long long local_handle
    # The endpoint's link, once it has heard of the attach.
    cdef public object link
    # A delivery began, and its last transfer is to come.
    cdef bint is_partial
    cdef readonly unsigned int delivery_count
    # Delivery-count and credit of its last flow together: so far may the other side send. [2.6.7]
    cdef readonly unsigned int credit_end
    # Its peer asked for a flow; or for a drain, without credit that could be given back.
    cdef bint wants_flow
    cdef bint wants_drained
    # It was attached again elsewhere: what still comes for it is not for the engine.
    cdef readonly bint is_stolen
    # What its sender did that cannot be done: the link is to be ended with it.
    cdef readonly object fault


cdef class Peers:
    cdef list sessions
    cdef dict links
    # Our channels that sessions of the peer answered.
    cdef set answered
    # Sessions and links in the order of their begins and attaches, for who hears of these from the engine.
    cdef object begun
    cdef object attached
    # Sessions and links whose peer is owed a flow that the engine does not send.
    cdef list restless
    # Of what is written: bytes of the protocol header and of a frame that nobody looks at, and a frame that is not whole.
    cdef unsigned int out_header_left
    cdef size_t out_left
    cdef bytearray out_held
    cdef dict by_local_channel
    # Of links that we attached first, and of sessions that we began: what we said.
    cdef dict own_handles
    cdef dict own_windows

    cdef PeerSession session_at(self, unsigned int channel)
    cdef int add_session(self, PeerSession session) except -1
    cdef int drop_session(self, PeerSession session) except -1
    cdef PeerLink add_link(self, PeerLink link)
    cdef int forget(self, PeerLink link) except -1
    cdef int _join(self, PeerSession session, int local_channel, unsigned int window) except -1
    cdef int watch(self, const unsigned char *at, size_t size) except -1
    cdef const unsigned char *_watch_held(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef int _look_out(self, const unsigned char *frame, size_t size) except -1
    cdef int want_flow(self, object of) except -1


cdef bytes key_of(const unsigned char *name, bint is_sender)

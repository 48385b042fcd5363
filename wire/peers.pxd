cdef class PeerLink


cdef class PeerSession:
    # ``near`` has the session's links by handle; links with large handles are in ``far``.
    cdef readonly unsigned int channel
    # Our channel that the peer's begin answers, and our channel of this session. -1: none.
    cdef int answered_channel
    cdef int local_channel
    # The endpoint's session, once the endpoint has heard of the begin.
    cdef public object session
    cdef list near
    cdef dict far
    # Numbers of the peer's transfers and flows. [2.5.6]
    cdef unsigned int next_incoming_id
    cdef unsigned int window_end
    # End of the window in our last flow or begin.
    cdef unsigned int told_window_end
    cdef bint wants_flow

    cdef PeerLink link_at(self, unsigned int handle)
    cdef int put(self, PeerLink link) except -1
    cdef int drop(self, unsigned int handle) except -1


cdef class PeerLink:
    # The peer's data about a link, from its attach to its detach.
    cdef readonly bytes key
    cdef readonly bint is_sender
    cdef readonly unsigned int handle
    cdef readonly PeerSession session
    # Our handle of the same link; -1 before our attach is written.
    cdef readonly long long local_handle
    # The endpoint's link, once the endpoint has heard of the attach.
    cdef public object link
    # A delivery began, and its last transfer is still to come.
    cdef bint is_partial
    cdef readonly unsigned int delivery_count
    # Delivery-count and credit of the peer's last flow together: the limit for deliveries of our side. [2.6.7]
    cdef readonly unsigned int credit_end
    # The peer asked for a flow; or for a drain, without credit that could be given back.
    cdef bint wants_flow
    cdef bint wants_drained
    # The peer attached the link again elsewhere: further frames of this link are not for the engine.
    cdef readonly bint is_stolen
    # The error for a fault of the peer, to end the link with.
    cdef readonly object fault


cdef class Peers:
    cdef list sessions
    cdef dict links
    # Sessions and links in the order of their begins and attaches, for matching with the engine's events.
    cdef object begun
    cdef object attached
    # Sessions and links whose peer is owed a flow that the engine does not send.
    cdef list restless
    # Our output: bytes left of the protocol header and of a frame to skip, and the bytes of an incomplete frame.
    cdef unsigned int out_header_left
    cdef size_t out_left
    cdef bytearray out_held
    cdef dict by_local_channel
    # Handles of links that we attached first, by channel, then by name and role.
    cdef dict own_handles
    # Windows of our last begins by channel, as long as the peer has not answered.
    cdef dict own_windows

    cdef PeerSession session_at(self, unsigned int channel)
    cdef int add_session(self, PeerSession session) except -1
    cdef int drop_session(self, PeerSession session) except -1
    cdef PeerLink add_link(self, PeerLink link)
    cdef int forget(self, PeerLink link) except -1
    cdef int _join(self, PeerSession session, int local_channel, unsigned int window) except -1
    cdef int _free_local(self, int channel) except -1
    cdef int _on_own_begin(self, int channel, int answered_channel, unsigned int window) except -1
    cdef int watch(self, const unsigned char *at, size_t size) except -1
    cdef const unsigned char *_watch_held(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef int _look_out(self, const unsigned char *frame, size_t size) except -1
    cdef int want_flow(self, object of) except -1


cdef bytes key_of(const unsigned char *name, bint is_sender)

cdef class PeerLink


cdef class PeerSession:
    # A session as the peer's frames describe it. ``near`` has its links by handle, ``far`` the links with large
    # handles.
    cdef readonly unsigned int channel
    # Our channel that the peer's begin names as answered, and our own channel of this session; -1: none.
    cdef int answered_channel
    cdef int local_channel
    # The endpoint's Session object, set once the endpoint has handled the begin.
    cdef public object session
    cdef list near
    cdef dict far
    # Id of the peer's next transfer, and end of the window in the peer's last flow or begin. [2.5.6]
    cdef unsigned int next_incoming_id
    cdef unsigned int window_end
    # End of our incoming window as our last flow or begin told the peer.
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
    # Our own handle of the same link; -1 before our attach is written.
    cdef readonly long long local_handle
    # The endpoint's Link object, set once the endpoint has handled the attach.
    cdef public object link
    # A delivery began, and its last transfer is still to come.
    cdef bint is_partial
    cdef readonly unsigned int delivery_count
    # Delivery-count plus link-credit of the peer's last flow: our delivery-count may not go beyond this. [2.6.7]
    cdef readonly unsigned int credit_end
    # The peer asked for a flow (echo); or for a drain, to be answered with a flow if there is no credit to give back.
    cdef bint wants_flow
    cdef bint wants_drained
    # The peer attached a link of the same name again: further frames of this link are kept from the engine.
    cdef readonly bint is_stolen
    # The error for a transfer of the peer that is not supported, with which the owner ends the link; None: no fault.
    cdef readonly object fault


cdef class Peers:
    cdef list sessions
    cdef dict links
    # Sessions and links in the order of the peer's begins and attaches, taken out as the engine reports each.
    cdef object begun
    cdef object attached
    # Sessions and links for which the peer is owed a flow that the engine does not send.
    cdef list restless
    # Our output: bytes left of the protocol header and of a frame to skip, and the bytes of an incomplete frame.
    cdef unsigned int out_header_left
    cdef size_t out_left
    cdef bytearray out_held
    cdef dict by_local_channel
    # Handles of links that we attached first, by channel, then by name and role.
    cdef dict own_handles
    # Incoming windows in our begins that the peer has not answered yet, by our channel.
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

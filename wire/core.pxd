"""The compiled base classes of endpoints, sessions and links, for work that is done for each delivery.

`Endpoint`, `Session`, `IncomingLink` and `OutgoingLink` (wire.endpoint, wire.link) are built on these classes.
"""

cimport cython

from wire.gate cimport FrameGate
from wire.peers cimport PeerLink
from wire.proton cimport pn_collector_t, pn_connection_t, pn_delivery_t, pn_link_t, pn_session_t, pn_transport_t

cdef enum:
    CHUNK_BYTES = 65536
    OUTPUT_BOUND_BYTES = 65536


cdef class Waiter:
    """An object that holds back output until an endpoint has room; a higher ``rank``, a priority, goes first."""

    cdef int rank
    cdef int on_room(self) except -1


cdef class DeliveryOwner(Waiter):
    """Compiled owner of a link: gets the deliveries, dispositions and flows of the link without a call of Python."""

    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1
    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1
    cdef int on_flow_event(self) except -1


cdef class LinkCore


cdef class DirtyEndpoints:
    cdef list endpoints


cdef class EndpointCore:
    cdef pn_connection_t *connection
    cdef pn_transport_t *transport
    cdef pn_collector_t *collector
    cdef readonly FrameGate gate
    # Events of our own, which the engine does not report: returned by the next `drain`.
    cdef list late
    cdef readonly bint is_freed
    cdef public bint is_output_blocked
    cdef readonly bint has_stopped_reading
    # Bytes of the peer that wait for `receive_rest`, from place ``rest_at`` on; None if none wait.
    cdef bytes rest
    cdef Py_ssize_t rest_at
    cdef bint is_dirty
    cdef size_t unsent_bytes
    cdef readonly unsigned long long bytes_in
    cdef readonly unsigned long long bytes_out
    # Time of the peer's last byte, to the last call of ``hear``, and the count of the peer's bytes by then.
    cdef readonly double heard_at
    cdef unsigned long long heard_bytes
    cdef readonly DirtyEndpoints dirty
    cdef list reduced
    cdef list owing
    cdef dict waiters  # waiters for room, in order, that hold whole deliveries
    cdef dict bulk  # waiters for room, in order, that hold pieces of large deliveries
    cdef bint is_ranked
    cdef unsigned long long outputs

    cdef int mark(self) except -1
    cdef bint is_calm_now(self) noexcept
    cdef bint wants_flush(self) except -1
    cdef bint has_room_now(self) noexcept
    cdef int wait(self, object waiter) except -1
    cdef int wait_with_bulk(self, object waiter) except -1
    cdef bint has_others_waiting(self, object waiter) except -1
    cdef int _wake(self, queue) except -1
    cdef int _rank(self, object waiter) except -1
    cdef Py_ssize_t _push(self, const char *bytes_, Py_ssize_t size, unsigned int most_changes) except -1
    cdef int _push_rest(self, unsigned int most_changes) except -1
    cdef bint _prepare_output(self) except -1
    cdef int _answer_drains(self) except -1
    cdef ssize_t _gather(self) except -1
    cdef ssize_t _say_flows(self, ssize_t size) except -1
    cdef int _on_flow(self, sink, LinkCore link) except -1
    cdef int _on_delivery(self, sink, pn_delivery_t *delivery) except -1
    cdef int _on_disposition(self, sink, LinkCore link, pn_delivery_t *delivery) except -1


cdef class SessionCore:
    cdef public object owner
    cdef pn_session_t *raw
    cdef readonly EndpointCore endpoint
    cdef readonly bint is_gone
    # Incoming window: bytes that the session's links together may leave unread here.
    cdef public size_t window_bytes
    # Frames that the engine has not written yet, estimated since its output number ``handed_at``: the peer's window
    # does not count these frames yet.
    cdef size_t handed_frames
    cdef unsigned long long handed_at
    # The peer's begin gave a window so large that it counts as no bound.
    cdef bint is_unbounded

    cdef bint is_crowded_now(self) noexcept
    cdef size_t remote_window_now(self) noexcept
    cdef size_t handed_now(self) noexcept


cdef class LinkCore:
    cdef pn_link_t *raw
    # The engine's link for Python: its cffi pointer, which must not be used once ``is_gone`` is true.
    cdef readonly object pointer
    cdef readonly EndpointCore endpoint
    cdef readonly SessionCore session
    cdef readonly str name
    cdef object _owner
    cdef DeliveryOwner hot
    cdef readonly bint is_gone
    cdef public bint has_left
    cdef public bint has_peer_left
    cdef readonly bint is_incoming
    # The peer's data about the link; None before the peer attached the link.
    cdef readonly PeerLink peer
    # A LinkDetached with the peer's fault is on its way to the owner, who closes the link: do not report it again.
    cdef public bint is_fault_told
    # The attach of the link was measured, and fits in a frame of the peer.
    cdef public bint is_measured

    cdef bint is_open_now(self) noexcept

    @cython.final
    cdef inline bint is_faulty(self) noexcept:
        """Say whether the peer sent something over the link that ends the link: no further delivery of it is read."""
        return self.peer is not None and self.peer.fault is not None


cdef class IncomingCore(LinkCore):
    cdef int slack
    cdef readonly size_t read_bytes
    # Number of deliveries that were advanced past: read, or given up.
    cdef unsigned int passed_count

    cdef int credit_now(self) noexcept
    cdef int excess_now(self) noexcept
    cdef int change_credit(self, int change) except -1
    cdef int set_credit_now(self, int deliveries) except -1
    cdef int grant_now(self, int deliveries) except -1
    cdef int forgive_crossed_now(self) except -1
    cdef int raise_negative_credit(self) except -1
    cdef pn_delivery_t *current_now(self) noexcept
    cdef ssize_t recv_into(self, char *buffer, size_t size) except -1
    cdef int advance_now(self) except -1


cdef class OutgoingCore(LinkCore):
    # Our answer to the peer's drain, giving all credit back, is decided but not given to the engine yet.
    cdef bint owes_credit

    cdef int credit_now(self) noexcept
    cdef bint is_writable_now(self) noexcept
    cdef pn_delivery_t *start_now(self, const char *tag, size_t size) except NULL
    cdef int send_now(self, const char *chunk, size_t size) except -1
    cdef int finish_now(self) except -1
    cdef int abort_now(self, pn_delivery_t *delivery) except -1


cdef char scratch[CHUNK_BYTES]

"""The compiled core of one connection, for work that is done for each delivery: events, credit, reading, writing.

`wire.endpoint.Endpoint`, `wire.link.IncomingLink` and `OutgoingLink` are built on the classes here, and add the work
that is done once for each link. Spec: AMQP 1.0 [2.6]. Counts of credit are deliveries. A delivery is a pointer of the
engine, and an opaque int to Python.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memcpy

from wire.peers cimport PeerLink, PeerSession
from wire.proton cimport PN_DELIVERY, PN_LINK_FLOW, PN_LOCAL_ACTIVE, PN_REMOTE_ACTIVE, pn, pn_bytes_t, pn_event_t

from wire.errors import LocalStateError


cdef extern from "<sys/socket.h>" nogil:
    ssize_t c_send "send" (int, const void *, size_t, int)
    const int MSG_DONTWAIT
    const int MSG_NOSIGNAL

cdef enum:
    MAX_KIND = 128
    # Size assumed of a transfer frame, for an estimate of how many frames the engine has not written yet. If the peer
    # takes smaller frames only, the estimate is too low, and the engine keeps some frames until the peer's session
    # window opens.
    LEAST_FRAME_BYTES = 16000
    # AMQP's MIN-MAX-FRAME-SIZE. [2.4.1]
    SMALLEST_FRAME_BYTES = 512
    # Most bytes of a flow frame that this endpoint writes itself, behind the engine's output.
    MOST_FLOW_BYTES = 128

cdef unsigned int OVERRUN_FRAMES = 0x80000000
cdef unsigned int UNLIMITED = 0xFFFFFFFF

cdef char gathered[OUTPUT_BOUND_BYTES]
cdef bint cold_kinds[MAX_KIND]


def pass_on(kinds):
    """Have `EndpointCore.drain` pass events of these ``kinds`` (the engine's numbers) to `Endpoint._on_cold_event`.

    Events of other kinds are dropped, but for deliveries and flows.
    """
    for kind in kinds:
        cold_kinds[kind] = True


cdef class Waiter:
    cdef int on_room(self) except -1:
        raise NotImplementedError


def _rank_of(waiter):
    return (<Waiter>waiter).rank if isinstance(waiter, Waiter) else 0


cdef class DeliveryOwner(Waiter):
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        raise NotImplementedError

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        raise NotImplementedError

    cdef int on_flow_event(self) except -1:
        raise NotImplementedError

    def on_gone(self):
        """Take note that both sides have ended the owner's link, which is freed with its deliveries next."""


cdef class DirtyEndpoints:
    """A node's endpoints that may have output, each once, for the driver to flush.

    Always: ``is_dirty`` of an endpoint is true if, and only if, the endpoint is in here.
    """

    def __cinit__(self):
        self.endpoints = []

    def __len__(self):
        return len(self.endpoints)

    def pop(self):
        """Remove and return an endpoint that needs a flush; None if there is none.

        Endpoints without output are removed on the way.
        """
        cdef EndpointCore endpoint
        while self.endpoints:
            endpoint = self.endpoints.pop()
            endpoint.is_dirty = False
            if endpoint.wants_flush():
                return endpoint
        return None

    def discard(self, EndpointCore endpoint):
        if endpoint.is_dirty:
            endpoint.is_dirty = False
            self.endpoints.remove(endpoint)

    def clear(self):
        cdef EndpointCore endpoint
        for endpoint in self.endpoints:
            endpoint.is_dirty = False
        self.endpoints.clear()


cdef class EndpointCore:
    """Base class of `Endpoint`: drives proton's engine of one AMQP connection, with its bytes, events and output."""

    def __cinit__(self):
        self.waiters = {}
        self.bulk = {}
        self.reduced = []
        self.owing = []
        self.late = []

    def _drive(self, size_t connection, size_t transport, size_t collector, DirtyEndpoints dirty, FrameGate gate):
        """Use the engine's objects at these addresses for the connection; called once, before any other method."""
        self.gate = gate
        self.connection = <pn_connection_t *>connection
        self.transport = <pn_transport_t *>transport
        self.collector = <pn_collector_t *>collector
        self.dirty = dirty

    def _stop(self):
        """Stop using the engine, whose memory the caller frees next.

        Later calls do nothing, except that `begin` raises ConnectionFault; `ending` must not be read any more.
        """
        self.is_freed = True
        self.rest = None
        self.reduced.clear()
        self.owing.clear()
        self.waiters.clear()
        self.bulk.clear()
        self.gate.release()
        if self.dirty is not None:
            self.dirty.discard(self)

    @property
    def is_calm(self):
        """Whether our side of the connection is open and its transport works.

        A flush then has nothing to do but to write bytes; otherwise the connection has to be ended.
        """
        return self.is_calm_now()

    cdef bint is_calm_now(self) noexcept:
        if self.is_freed or pn.transport_closed(self.transport):
            return False
        return bool(pn.connection_state(self.connection) & PN_LOCAL_ACTIVE)

    cdef bint wants_flush(self) except -1:
        """Say whether the driver has to flush the endpoint: for output, for a waiter for room, or to end its connection."""
        if not self.is_calm_now() or self.reduced or self.owing or self.waiters or self.bulk or self.gate.restless:
            return True
        return pn.transport_pending(self.transport) > 0

    # Bytes
    def receive(self, chunk, unsigned int most_changes=UNLIMITED):
        """Take bytes of the peer, as events for `drain`.

        Behind ``most_changes`` frames that begin or end a session or link, which cost far more than others, the rest of
        the bytes is kept for `receive_rest`, and ``has_rest`` is true. Malformed bytes lead to a close with an error in
        the output, and to a Closed event; bytes behind them are not read.
        """
        cdef Py_buffer view
        cdef Py_ssize_t taken
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            if self.is_freed:
                return
            self.bytes_in += view.len
            if self.rest is not None:
                # The bytes go behind those that wait, so that the order of the peer's frames stays.
                self.rest = self.rest[self.rest_at :] + PyBytes_FromStringAndSize(<const char *>view.buf, view.len)
                self.rest_at = 0
                self._push_rest(most_changes)
                return
            taken = self._push(<const char *>view.buf, view.len, most_changes)
            if taken < view.len:
                self.rest = PyBytes_FromStringAndSize(<const char *>view.buf + taken, view.len - taken)
                self.rest_at = 0
        finally:
            PyBuffer_Release(&view)

    def receive_rest(self, unsigned int most_changes=UNLIMITED):
        """Take the bytes that `receive` kept, at most as far as `receive` would, as events for `drain`."""
        if self.rest is not None and not self.is_freed:
            self._push_rest(most_changes)

    @property
    def has_rest(self):
        """Whether bytes of the peer wait for `receive_rest`."""
        return self.rest is not None

    cdef int _push_rest(self, unsigned int most_changes) except -1:
        cdef bytes rest = self.rest
        cdef Py_ssize_t left = len(rest) - self.rest_at
        cdef Py_ssize_t taken = self._push(PyBytes_AS_STRING(rest) + self.rest_at, left, most_changes)
        if taken < left:
            self.rest_at += taken
        else:
            self.rest = None
        return 0

    cdef Py_ssize_t _push(self, const char *bytes_, Py_ssize_t size, unsigned int most_changes) except -1:
        """Give bytes to the frame gate; return how many it took: all of them, unless it stopped at ``most_changes``."""
        cdef Py_ssize_t taken = self.gate.feed(<const unsigned char *>bytes_, size, most_changes)
        self.has_stopped_reading = pn.transport_capacity(self.transport) < 0
        if self.gate.fault is not None and not self.has_stopped_reading:
            self.has_stopped_reading = True
            self._fail(self.gate.fault)
        self.mark()
        return size if self.has_stopped_reading else taken

    def hear(self, double now):
        """Note ``now`` as the time of the peer's last byte, if bytes of the peer came since the last call.

        The first call notes the time in any case.
        """
        if self.heard_bytes != self.bytes_in or self.heard_at == 0:
            self.heard_bytes, self.heard_at = self.bytes_in, now

    def output(self):
        """Remove and return the next bytes for the socket, 64 KiB at most; b"" if there are none now."""
        return PyBytes_FromStringAndSize(gathered, self._gather())

    def send_to(self, int socket):
        """Write the output straight to a non-blocking socket, given by its number, until the socket takes no more.

        Return bytes that were removed from the output and that the socket did not take, for the caller to write later;
        b"" if there is no output left. Raises OSError as `socket.send` does.
        """
        cdef ssize_t size, sent
        while (size := self._gather()):
            sent = c_send(socket, gathered, size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0:
                if errno != EAGAIN and errno != EINTR:
                    raise OSError(errno, "send")
                sent = 0
            if sent < size:
                if self.owing:
                    self.mark()  # another flush has to write the answers to drains: perhaps no input follows
                return PyBytes_FromStringAndSize(gathered + sent, size - sent)
        return b""

    cdef ssize_t _gather(self) except -1:
        """Move output of the engine into ``gathered``, up to its size, then flows that the engine does not write.

        Return the number of bytes. The engine gives at most a frame at a time; one write of many frames costs less.
        """
        cdef ssize_t size = 0, pending = 0
        if not self._prepare_output():
            return 0
        while size < <ssize_t>sizeof(gathered):
            pending = pn.transport_pending(self.transport)
            if pending <= 0:
                break
            pending = min(pending, <ssize_t>sizeof(gathered) - size)
            memcpy(gathered + size, pn.transport_head(self.transport), pending)
            pn.transport_pop(self.transport, pending)
            size += pending
        self.gate.watch(<const unsigned char *>gathered, size)
        if pending == 0 and self.gate.restless:
            size = self._say_flows(size)
        self.bytes_out += size
        self.unsent_bytes = 0
        self.outputs += 1
        return size

    cdef ssize_t _say_flows(self, ssize_t size) except -1:
        """Append flows that the peer is owed, and that the engine does not write, to ``size`` bytes in ``gathered``.

        Return the new number of bytes there; flows without room wait for the next output.
        """
        cdef list owed
        owed, self.gate.restless = self.gate.restless, []
        for each in owed:
            if size + MOST_FLOW_BYTES > <ssize_t>sizeof(gathered):
                self.gate.restless.append(each)
                continue
            frame = self._flow_for(each)
            if frame is not None:
                memcpy(gathered + size, PyBytes_AS_STRING(frame), len(frame))
                size += len(frame)
        return size

    def _flow_for(self, each):
        """Return the flow frame that the peer is owed for ``each``, a session or link.

        None if the session or link is gone, or if no flow is due any more.
        """
        cdef PeerSession session
        cdef PeerLink peer
        cdef LinkCore link
        cdef int credit
        if isinstance(each, PeerSession):
            session = each
            session.wants_flow = False
            return self._flow_with(session, session.session, {})
        peer = each
        link = peer.link
        is_asked, is_drained = peer.wants_flow, peer.wants_drained
        peer.wants_flow = peer.wants_drained = False
        if link is None or not link.is_open_now() or peer.local_handle < 0:
            return None
        if peer.is_sender:
            credit, count = max(0, pn.link_remote_credit(link.raw)), peer.delivery_count
        else:
            credit = pn.link_credit(link.raw) + pn.link_queued(link.raw)
            # If the peer asked for a drain but for no echo, no flow is due here while credit remains: the engine writes a
            # flow when the link's owner gives the credit back.
            if not is_asked and not (is_drained and credit <= 0 and not (<OutgoingCore>link).owes_credit):
                return None
            count = (peer.credit_end - <unsigned int>credit) & 0xFFFFFFFF
            credit = max(0, credit)
        fields = {"handle": peer.local_handle, "delivery-count": count, "link-credit": credit}
        if pn.link_get_drain(link.raw):
            fields["drain"] = True
        return self._flow_with(peer.session, link.session, fields)

    def _flow_with(self, PeerSession peer, SessionCore session, fields):
        if session is None or session.is_gone or session.has_left or peer.local_channel < 0:
            return None
        return self.gate.flow_of(peer, pn.session_remote_incoming_window(session.raw), fields)

    cdef bint _prepare_output(self) except -1:
        cdef IncomingCore link
        if self.is_freed:
            return False
        if self.reduced:
            for link in self.reduced:
                link.raise_negative_credit()
            self.reduced.clear()
        if self.owing:
            self._answer_drains()
        return True

    cdef int _answer_drains(self) except -1:
        # A drain is answered only when all deliveries of the link are written and none is begun. The engine forgets an
        # answer given earlier. And the engine counts a delivery at its end, so an earlier answer would also give back
        # the credit of a begun delivery, which then takes one more at its end.
        cdef OutgoingCore link
        cdef list links
        links, self.owing = self.owing, []
        for link in links:
            if link.is_gone or not link.owes_credit:
                continue
            if pn.link_queued(link.raw) or pn.link_current(link.raw) is not NULL:
                self.owing.append(link)
                continue
            link.owes_credit = False
            pn.link_drained(link.raw)
        return 0

    cdef int mark(self) except -1:
        if not self.is_dirty and not self.is_freed and self.dirty is not None:
            self.is_dirty = True
            self.dirty.endpoints.append(self)
        return 0

    def mark_dirty(self):
        """Put the endpoint among the node's dirty endpoints, which the driver flushes, since it may have output now."""
        self.mark()

    # Room
    cdef bint has_room_now(self) noexcept:
        return not self.is_output_blocked and self.unsent_bytes < OUTPUT_BOUND_BYTES

    @property
    def has_room(self):
        """Whether more message bytes may be handed to the engine: the socket takes bytes, and less than 64 KiB wait."""
        return self.has_room_now()

    cdef int wait(self, object waiter) except -1:
        self.waiters[waiter] = None
        return self._rank(waiter)

    cdef int wait_with_bulk(self, object waiter) except -1:
        self.bulk[waiter] = None
        return self._rank(waiter)

    cdef bint has_others_waiting(self, object waiter) except -1:
        return bool(self.waiters) or len(self.bulk) > (waiter in self.bulk)

    def wait_for_room(self, waiter):
        """Have the next `wake_waiters` that finds room for output call ``waiter.on_writable()``, once.

        The node calls `wake_waiters` when there may be room again. A compiled `Waiter` gets `on_room` instead.
        """
        self.wait(waiter)

    @property
    def has_waiters(self):
        return bool(self.waiters) or bool(self.bulk)

    def wake_waiters(self):
        """Call the waiters for room in turn while there is room for output, each once.

        Waiters with whole deliveries come before waiters with pieces of large deliveries. Among waiters of one kind, a
        higher rank comes first. A waiter that waits again goes behind the others.
        """
        self._wake(self.waiters)
        self._wake(self.bulk)

    cdef int _wake(self, queue) except -1:
        cdef list turns
        if not queue or not self.has_room_now():
            return 0
        turns = list(queue)
        if self.is_ranked:
            turns.sort(key=_rank_of, reverse=True)
        for waiter in turns:
            if not self.has_room_now():
                break
            if queue.pop(waiter, self) is self:
                continue  # another waiter's turn has already called or removed this waiter
            if isinstance(waiter, Waiter):
                (<Waiter>waiter).on_room()
            else:
                waiter.on_writable()
        return 0

    cdef int _rank(self, object waiter) except -1:
        if isinstance(waiter, Waiter) and (<Waiter>waiter).rank != 0:
            self.is_ranked = True
        return 0

    # Events
    def drain(self, sink):
        """Hand each delivery, disposition and flow to its link's compiled owner, else to ``sink``; return other events.

        The calls are in the order of the engine's events, and so are the events that are returned.
        """
        cdef list events = []
        cdef pn_event_t *event
        cdef int kind
        cdef void *context
        while not self.is_freed:
            event = pn.collector_peek(self.collector)
            if event is NULL:
                break
            kind = pn.event_type(event)
            if kind == PN_DELIVERY:
                self._on_delivery(sink, pn.event_delivery(event))
            elif kind == PN_LINK_FLOW:
                context = pn.link_get_context(pn.event_link(event))
                if context is not NULL:
                    self._on_flow(sink, <LinkCore><PyObject *>context)
            elif 0 <= kind < MAX_KIND and cold_kinds[kind]:
                self._on_cold_event(kind, <size_t>event, events)
            if not self.is_freed:
                pn.collector_pop(self.collector)
        if self.late:
            events += self.late
            self.late.clear()
        return events

    def on_peer_begun(self, SessionCore session):
        """Tie ``session`` to the frame gate's data of the peer's begin, which is the oldest begin without a session.

        The engine reports begins in the order in which the peer sent them, so the oldest is the right one.
        """
        cdef PeerSession peer = self.gate.begun.popleft()
        peer.session = session

    def on_peer_attached(self, LinkCore link):
        """Tie ``link`` to the frame gate's data of the peer's attach, which is the oldest attach without a link.

        The engine reports attaches in the order in which the peer sent them, so the oldest is the right one.
        """
        link.peer = self.gate.attached.popleft()
        link.peer.link = link

    def tell_later(self, event):
        """Have the next `drain` return ``event``, an event of ours, behind the engine's events."""
        self.late.append(event)

    # In the next methods a local variable holds the link's owner while it is called, since the call may give the link
    # another owner, or end the link.
    cdef int _on_flow(self, sink, LinkCore link) except -1:
        cdef DeliveryOwner hot = link.hot
        if not link.is_incoming and (<OutgoingCore>link).owes_credit and not pn.link_get_drain(link.raw):
            (<OutgoingCore>link).owes_credit = False  # the peer has ended its drain: give no credit back
        if link.is_incoming and not link.is_gone:
            # The peer may have answered a drain before it heard of a reduction of credit, just as it may have sent a
            # transfer: a credit below 0 that comes from this is raised to 0.
            (<IncomingCore>link).forgive_crossed_now()
        if hot is not None:
            hot.on_flow_event()
        else:
            sink.on_flow(link)
        return 0

    cdef int _on_delivery(self, sink, pn_delivery_t *delivery) except -1:
        cdef void *context = pn.link_get_context(pn.delivery_link(delivery))
        cdef LinkCore link
        cdef DeliveryOwner hot
        if context is NULL:
            return 0
        link = <LinkCore><PyObject *>context
        if not link.is_incoming:
            self._on_disposition(sink, link, delivery)
            return 0
        if pn.delivery_updated(delivery):
            self._on_disposition(sink, link, delivery)
        if link.is_faulty():
            self._on_link_fault(link)
            return 0
        if not link.is_gone:
            (<IncomingCore>link).forgive_crossed_now()
            hot = link.hot
            if hot is not None:
                hot.on_delivery_event(delivery)
            else:
                sink.on_delivery(link, <size_t>delivery)
        return 0

    cdef int _on_disposition(self, sink, LinkCore link, pn_delivery_t *delivery) except -1:
        cdef DeliveryOwner hot = link.hot
        if hot is not None:
            hot.on_disposition_event(delivery)
        else:
            sink.on_disposition(link, <size_t>delivery)
        return 0


# Sessions and links hold a reference to their objects in the engine. Without a reference, the engine would finalize and
# revive the link and session with each delivery, which would take a tenth of the cost of forwarding.
cdef class SessionCore:
    def __init__(self, EndpointCore endpoint, size_t pointer):
        self.endpoint = endpoint
        self.raw = <pn_session_t *>pointer
        pn.incref(self.raw)

    def _lose(self):
        """Let go of the engine's session, which the caller frees next."""
        if not self.is_gone:
            self.is_gone = True
            pn.decref(self.raw)

    @property
    def address(self):
        """Address in memory of the engine's session, as an int for cffi."""
        return <size_t>self.raw

    cdef bint is_crowded_now(self) noexcept:
        """Say whether unread bytes of all links take more than a quarter of the session's incoming window.

        The owners of links can then act well before the window shuts for all links of the session.
        """
        return pn.session_incoming_bytes(self.raw) * 4 > self.window_bytes

    def on_begun(self):
        """Note whether the window in the peer's begin, which has just come, is so large that it bounds no transfers."""
        self.is_unbounded = pn.session_remote_incoming_window(self.raw) >= OVERRUN_FRAMES

    cdef size_t remote_window_now(self) noexcept:
        cdef unsigned int frames = pn.session_remote_incoming_window(self.raw)
        # The engine's count of frames that the peer's window still takes is unsigned: if the peer shrank its window
        # below the frames under way, the count wraps to a huge number, which stands for 0.
        return 0 if frames >= OVERRUN_FRAMES and not self.is_unbounded else frames

    cdef size_t handed_now(self) noexcept:
        """Return an estimate of how many of the session's transfer frames the engine has not written yet.

        The estimate is too high rather than too low, unless the peer takes small frames only.
        """
        cdef size_t kept_bytes
        if self.handed_at != self.endpoint.outputs:
            self.handed_at = self.endpoint.outputs
            kept_bytes = pn.session_outgoing_bytes(self.raw)
            # Bytes left from earlier outputs count, too, as frames of the smallest size: else the engine would be
            # handed far more frames than the window takes.
            self.handed_frames = 1 + kept_bytes // SMALLEST_FRAME_BYTES if kept_bytes else 0
        return self.handed_frames

    @property
    def remote_window_frames(self):
        """Number of transfer frames that the peer's session window still takes. [2.5.6]"""
        return self.remote_window_now()


cdef class LinkCore:
    """Base class of links in both directions, over the engine's link.

    The engine's link points to this object while ``is_gone`` is false, so that events lead here.
    """

    def __init__(self, SessionCore session, pointer, size_t address, str name):
        self.session = session
        self.endpoint = session.endpoint
        self.name = name
        self.is_incoming = isinstance(self, IncomingCore)
        self.pointer = pointer
        self.raw = <pn_link_t *>address
        pn.incref(self.raw)
        pn.link_set_context(self.raw, <void *>self)

    def _lose(self):
        """Let go of the engine's link, which the caller frees next; no more events lead to this object."""
        if not self.is_gone:
            self.is_gone = True
            if self.peer is not None:
                self.peer.link = None
            pn.link_set_context(self.raw, NULL)
            pn.decref(self.raw)

    cdef bint is_open_now(self) noexcept:
        cdef int state
        if self.is_gone or self.has_left or self.has_peer_left:
            return False
        state = pn.link_state(self.raw)
        return bool(state & PN_LOCAL_ACTIVE) and bool(state & PN_REMOTE_ACTIVE)

    @property
    def is_open(self):
        """Whether both sides have attached the link, and neither has ended it."""
        return self.is_open_now()

    @property
    def address(self):
        """Address in memory of the engine's link, as an int for cffi."""
        return <size_t>self.raw

    @property
    def is_stolen(self):
        """Whether the peer attached a link of the same name and role again, which replaces this link. [2.6.1]"""
        return self.peer is not None and self.peer.is_stolen

    @property
    def fault(self):
        """The error with which to end this link, if the peer sent a transfer that is not supported; else None."""
        return None if self.peer is None else self.peer.fault

    @property
    def owner(self):
        """The object that handles the link's deliveries.

        `EndpointCore.drain` calls a DeliveryOwner directly; for links with other owners it calls its argument ``sink``.
        """
        return self._owner

    @owner.setter
    def owner(self, value):
        self._owner = value
        self.hot = <DeliveryOwner>value if isinstance(value, DeliveryOwner) else None


cdef class IncomingCore(LinkCore):
    cdef int credit_now(self) noexcept:
        return pn.link_credit(self.raw) - pn.link_queued(self.raw)

    cdef int excess_now(self) noexcept:
        return -self.credit_now() - self.slack

    cdef int change_credit(self, int change) except -1:
        self.slack = max(0, self.slack - change)
        pn.link_flow(self.raw, change)
        return self.endpoint.mark()

    cdef int grant_now(self, int deliveries) except -1:
        return 0 if self.is_gone else self.change_credit(deliveries)

    cdef int set_credit_now(self, int deliveries) except -1:
        cdef int change = 0 if self.is_gone else deliveries - self.credit_now()
        if change == 0:
            return 0
        if change < 0:
            self.endpoint.reduced.append(self)
        return self.change_credit(change)

    cdef int forgive_crossed_now(self) except -1:
        cdef int credit
        if self.slack:
            credit = self.credit_now()
            if credit < 0:
                self.change_credit(min(-credit, self.slack))
        return 0

    cdef int raise_negative_credit(self) except -1:
        # A credit below 0, which arises when transfers cross a reduction of credit, is raised to 0: the flow frame
        # would give a credit of -3 as 4294967293.
        cdef int missing
        if not self.is_gone:
            missing = pn.link_remote_credit(self.raw)
            if missing < 0:
                self.change_credit(-missing)
        return 0

    cdef pn_delivery_t *current_now(self) noexcept:
        return pn.link_current(self.raw)

    cdef ssize_t recv_into(self, char *buffer, size_t size) except -1:
        cdef ssize_t count = pn.link_recv(self.raw, buffer, size)
        self.endpoint.mark()  # reading reopens the session's window
        if count <= 0:
            return 0
        self.read_bytes += count
        return count

    cdef int advance_now(self) except -1:
        self.read_bytes = 0
        self.passed_count += 1
        pn.link_advance(self.raw)
        return self.endpoint.mark()

    # Properties and methods for Python callers, over the C functions above.
    @property
    def credit(self):
        """Number of deliveries that the sender may still start; negative if it started more than it has credit for."""
        return 0 if self.is_gone else self.credit_now()

    @property
    def excess(self):
        """Number of deliveries that the sender started beyond its credit, and beyond credit that we took back.

        Above 0, the sender broke a rule. [2.6.7]
        """
        return 0 if self.is_gone else self.excess_now()

    @property
    def queued(self):
        """Number of deliveries that arrived, in part or whole, and that `advance` has not passed."""
        return 0 if self.is_gone else pn.link_queued(self.raw)

    def grant(self, int deliveries):
        """Raise the sender's credit by ``deliveries``; raise LocalStateError for a negative number."""
        if deliveries < 0:
            raise LocalStateError(f"grant of {deliveries} on {self!r}; reduce with set_credit")
        self.grant_now(deliveries)

    def set_credit(self, int deliveries):
        """Set the sender's credit to exactly ``deliveries``.

        Deliveries that the sender starts before it hears of a reduction still come.
        """
        self.set_credit_now(deliveries)

    def request_drain(self, int deliveries):
        """Grant credit for ``deliveries`` more, and ask the sender to use all credit now or give it back. [2.6.7]"""
        if not self.is_gone:
            self.slack = max(0, self.slack - deliveries)
            pn.link_drain(self.raw, deliveries)
            self.endpoint.mark()

    def say_flow_again(self):
        """Send a flow with the link's credit as it is, to tell the peer the session's window; a drain stays a drain."""
        if self.is_drain_pending:
            self.request_drain(0)
        else:
            self.grant_now(0)

    def end_drain(self):
        if not self.is_gone:
            pn.link_set_drain(self.raw, False)

    @property
    def is_drain_pending(self):
        """Whether we asked the sender for a drain, and it has not used or given back all of its credit yet."""
        return not self.is_gone and bool(pn.link_draining(self.raw))

    @property
    def current(self):
        """The oldest delivery that `advance` has not passed; None without one, or after a transfer not supported."""
        cdef pn_delivery_t *delivery = NULL if self.is_gone or self.is_faulty() else self.current_now()
        return None if delivery is NULL else <size_t>delivery

    def recv(self, Py_ssize_t max_bytes):
        """Remove and return up to ``max_bytes`` that have arrived of the current delivery.

        b"" if no bytes are here now, or at the delivery's end.
        """
        cdef bytes buffer = PyBytes_FromStringAndSize(NULL, max_bytes)
        cdef ssize_t count = self.recv_into(PyBytes_AS_STRING(buffer), max_bytes)
        return buffer if count == max_bytes else buffer[:count]

    def advance(self):
        self.advance_now()


cdef class OutgoingCore(LinkCore):
    cdef int credit_now(self) noexcept:
        return 0 if self.owes_credit else pn.link_credit(self.raw)

    cdef bint is_writable_now(self) noexcept:
        cdef SessionCore session = self.session
        if not self.endpoint.has_room_now():
            return False
        return session.remote_window_now() > session.handed_now()

    cdef pn_delivery_t *start_now(self, const char *tag, size_t size) except NULL:
        cdef pn_bytes_t name
        cdef pn_delivery_t *delivery
        name.size, name.start = size, tag
        delivery = pn.delivery(self.raw, name)
        if delivery is NULL:
            raise MemoryError()
        return delivery

    cdef int send_now(self, const char *chunk, size_t size) except -1:
        pn.link_send(self.raw, chunk, size)
        self.endpoint.unsent_bytes += size
        self.session.handed_frames += 1 + size // LEAST_FRAME_BYTES
        return self.endpoint.mark()

    cdef int finish_now(self) except -1:
        pn.link_advance(self.raw)
        return self.endpoint.mark()

    cdef int abort_now(self, pn_delivery_t *delivery) except -1:
        pn.delivery_abort(delivery)
        return self.endpoint.mark()

    # Properties and methods for Python callers, over the C functions above.
    @property
    def credit(self):
        """Number of deliveries that we may still start; a delivery takes its credit only when it is finished.

        0 from `drained` on, until the peer ends its drain or grants credit anew.
        """
        return 0 if self.is_gone else self.credit_now()

    @property
    def is_draining(self):
        return not self.is_gone and bool(pn.link_get_drain(self.raw))

    def drained(self):
        """Give the link's remaining credit back, if the peer asks for a drain. [2.6.7]

        The answer goes out once all deliveries sent so far are written.
        """
        if self.is_draining and not self.owes_credit:
            self.owes_credit = True
            self.endpoint.owing.append(self)
            self.endpoint.mark()

    def end_credit(self):
        """Have no credit from now on, since the connection is lost: a delivery would go nowhere."""
        self.owes_credit = True

    @property
    def is_writable(self):
        """Whether the socket and the peer's session window have room for more message bytes.

        Bytes without room would pile up inside the engine.
        """
        return not self.is_gone and self.is_writable_now()

    def start(self, bytes tag):
        """Begin a delivery with ``tag``, which becomes the link's current delivery; return its pointer as an int."""
        return <size_t>self.start_now(PyBytes_AS_STRING(tag), len(tag))

    def send(self, chunk):
        """Append ``chunk`` to the message bytes of the current delivery."""
        cdef Py_buffer view
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            self.send_now(<const char *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    def finish(self):
        """Complete the current delivery: its last transfer goes out, and the link's credit falls by one."""
        self.finish_now()

    def abort(self, size_t delivery):
        """Abort a delivery that will never be complete: the receiver discards the part that it has. [2.6.14]"""
        self.abort_now(<pn_delivery_t *>delivery)

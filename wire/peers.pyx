"""Sessions and links of one connection's peer: names, handles and counts that the engine does not reveal. [2.5], [2.6]

The frame gate reads these from incoming and outgoing frames, since the engine hands out neither the handles of our
links nor the window in the last flow. From these data the endpoint makes flow frames that the peer asked for, and that
the engine does not write.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.string cimport memcpy

from wire.codec.composites cimport Fields, bytes_at, is_true_at, number_at, read_first_fields
from wire.codec.scan cimport Scan, begin_scan
from wire.plain cimport four_bytes

from wire.codec import table
from wire.codec.frames import AmqpFrame, CompositeValue, encode_frame

cdef enum:
    HEADER_BYTES = 8
    # Number of bytes at the beginning of a frame that tell its performative: header and descriptor, as the engine
    # writes both.
    TOLD_BY_BYTES = 11
    NEAR_HANDLES = 1024
    # Number of fields that are read of each of our own frames: a begin up to incoming-window, an attach up to role, a
    # flow up to next-outgoing-id.
    FIELDS_READ = 3

cdef enum:
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13


cdef class PeerSession:
    def __cinit__(self, unsigned int channel):
        self.channel = channel
        self.answered_channel = self.local_channel = -1
        self.near = []
        self.far = {}

    cdef PeerLink link_at(self, unsigned int handle):
        if handle >= NEAR_HANDLES:
            return self.far.get(handle)
        if handle >= <size_t>PyList_GET_SIZE(self.near):
            return None
        return <PeerLink><object>PyList_GET_ITEM(self.near, handle)

    cdef int put(self, PeerLink link) except -1:
        if link.handle >= NEAR_HANDLES:
            self.far[link.handle] = link
            return 0
        while <size_t>PyList_GET_SIZE(self.near) <= link.handle:
            self.near.append(None)
        self.near[link.handle] = link
        return 0

    cdef int drop(self, unsigned int handle) except -1:
        if handle >= NEAR_HANDLES:
            self.far.pop(handle, None)
        else:
            self.near[handle] = None
        return 0

    def links(self):
        return [link for link in self.near if link is not None] + list(self.far.values())


cdef class PeerLink:
    def __cinit__(
        self, PeerSession session, unsigned int handle, bytes key, bint is_sender, unsigned int delivery_count
    ):
        self.session = session
        self.handle = handle
        self.key = key
        self.is_sender = is_sender
        self.delivery_count = delivery_count
        self.local_handle = -1

    @property
    def name(self):
        return self.key[:len(self.key) - 1].decode()


cdef class Peers:
    """Tables of the sessions and links of one connection, by channel, handle and name, read from both sides' frames.

    Always: ``links`` has each link that the peer has attached, until the peer detaches the link, ends its session, or
    attaches another link with the same name and role.
    """

    def __cinit__(self):
        self.sessions = []
        self.links = {}
        self.begun = deque()
        self.attached = deque()
        self.restless = []
        self.out_header_left = HEADER_BYTES
        self.out_held = bytearray()
        self.by_local_channel = {}
        self.own_handles = {}
        self.own_windows = {}

    def release(self):
        """Drop all references to Session and Link objects, since these refer to their endpoint, which is freed next."""
        for session in self.sessions:
            if session is not None:
                session.session = None
                for link in session.links():
                    link.link = None
        self.begun.clear()
        self.attached.clear()
        self.restless.clear()

    cdef PeerSession session_at(self, unsigned int channel):
        if channel < <size_t>PyList_GET_SIZE(self.sessions):
            return <PeerSession><object>PyList_GET_ITEM(self.sessions, channel)
        return None

    cdef int add_session(self, PeerSession session) except -1:
        while <size_t>PyList_GET_SIZE(self.sessions) <= session.channel:
            self.sessions.append(None)
        self.sessions[session.channel] = session
        self.begun.append(session)
        if session.answered_channel >= 0:
            self._join(session, session.answered_channel, self.own_windows.pop(session.answered_channel))
        return 0

    cdef int drop_session(self, PeerSession session) except -1:
        for link in session.links():
            self.forget(link)
        if session.local_channel >= 0:
            self._free_local(session.local_channel)
        self.sessions[session.channel] = None
        return 0

    cdef PeerLink add_link(self, PeerLink link):
        """Add a link that the peer attached; return the link of the same name and role that it replaces, or None."""
        cdef dict handles = self.own_handles.get(link.session.local_channel)
        if handles is not None:
            link.local_handle = handles.pop(link.key, -1)
        link.session.put(link)
        self.attached.append(link)
        stolen = self.links.get(link.key)
        self.links[link.key] = link
        return stolen

    cdef int forget(self, PeerLink link) except -1:
        if self.links.get(link.key) is link:
            del self.links[link.key]
        return 0

    cdef int _join(self, PeerSession session, int local_channel, unsigned int window) except -1:
        """Note that our session on ``local_channel`` is the peer's ``session``: one begin has answered the other.

        ``window`` is the incoming window that our begin told the peer.
        """
        if session.local_channel >= 0:
            self._free_local(session.local_channel)
        session.local_channel = local_channel
        session.told_window_end = session.next_incoming_id + window
        self.by_local_channel[local_channel] = session
        return 0

    cdef int _free_local(self, int channel) except -1:
        """Forget which session is on our ``channel``: it is over, or our next session begins on the channel.

        The next session may begin there before the peer has ended the earlier one.
        """
        cdef PeerSession session = self.by_local_channel.pop(channel, None)
        if session is not None:
            session.local_channel = -1
        self.own_handles.pop(channel, None)
        return 0

    # Our output
    cdef int watch(self, const unsigned char *at, size_t size) except -1:
        """Read the next bytes of our output: note begins, attaches and flows, and step over all other frames.

        All output comes through here in order; a begin, attach or flow that is not complete yet is kept.
        """
        cdef const unsigned char *end = at + size
        cdef size_t frame_bytes, taken
        if self.out_header_left:
            taken = min(<size_t>self.out_header_left, size)
            self.out_header_left -= taken
            at += taken
        if self.out_left:
            taken = min(self.out_left, <size_t>(end - at))
            self.out_left -= taken
            at += taken
        if len(self.out_held):
            at = self._watch_held(at, end)
        while end - at >= TOLD_BY_BYTES:
            frame_bytes = four_bytes(at)
            if frame_bytes >= TOLD_BY_BYTES and BEGIN <= at[10] <= FLOW:
                if frame_bytes > <size_t>(end - at):
                    break
                self._look_out(at, frame_bytes)
            elif frame_bytes > <size_t>(end - at):
                self.out_left = frame_bytes - (end - at)
                return 0
            at += frame_bytes
        if at < end:
            self.out_held += at[:end - at]
        return 0

    cdef const unsigned char *_watch_held(self, const unsigned char *at, const unsigned char *end) except NULL:
        """Go on with the outgoing frame whose first bytes came with an earlier output; return the place behind it.

        Return ``end`` if the frame is not complete yet.
        """
        cdef size_t frame_bytes, taken, wanted
        while at < end and len(self.out_held):
            wanted = TOLD_BY_BYTES
            if <size_t>len(self.out_held) >= HEADER_BYTES:
                frame_bytes = int.from_bytes(self.out_held[:4], "big")
                if frame_bytes < TOLD_BY_BYTES or <size_t>len(self.out_held) >= TOLD_BY_BYTES:
                    wanted = frame_bytes
                if <size_t>len(self.out_held) >= TOLD_BY_BYTES and not BEGIN <= self.out_held[10] <= FLOW:
                    self.out_left = frame_bytes - len(self.out_held)
                    self.out_held.clear()
                    taken = min(self.out_left, <size_t>(end - at))
                    self.out_left -= taken
                    return at + taken
            else:
                wanted = HEADER_BYTES
            taken = min(wanted - len(self.out_held), <size_t>(end - at))
            self.out_held += at[:taken]
            at += taken
            if <size_t>len(self.out_held) >= HEADER_BYTES:
                frame_bytes = int.from_bytes(self.out_held[:4], "big")
                if frame_bytes == <size_t>len(self.out_held):
                    whole = bytes(self.out_held)
                    self.out_held.clear()
                    if frame_bytes >= TOLD_BY_BYTES:
                        self._look_out(whole, frame_bytes)
        return at

    cdef int _look_out(self, const unsigned char *frame, size_t size) except -1:
        cdef Scan scan
        cdef Fields fields
        cdef unsigned long long code
        cdef int channel = frame[6] << 8 | frame[7]
        cdef PeerSession session
        begin_scan(&scan, frame + size)
        if not read_first_fields(&scan, frame + HEADER_BYTES, &code, &fields, FIELDS_READ):
            return 0
        # A frame of ours without a mandatory field among those read here is ignored; the engine always writes these
        # fields.
        if fields.at[1] is NULL or code != FLOW and fields.at[2] is NULL or code == ATTACH and fields.at[0] is NULL:
            return 0
        if code == BEGIN:
            answered = -1 if fields.at[0] is NULL else number_at(fields.at[0])
            return self._on_own_begin(channel, answered, number_at(fields.at[2]))
        session = self.by_local_channel.get(channel)
        if code == ATTACH:
            self._on_own_attach(channel, session, key_of(fields.at[0], is_true_at(fields.at[2])), number_at(fields.at[1]))
        elif code == FLOW and session is not None:
            session.told_window_end = number_at(fields.at[1])
            if fields.at[0] is not NULL:
                session.told_window_end += <unsigned int>number_at(fields.at[0])
        return 0

    cdef int _on_own_begin(self, int channel, int answered_channel, unsigned int window) except -1:
        """Note our begin on ``channel`` with our incoming ``window``.

        ``answered_channel`` is the channel of the peer's session that the begin answers; -1 if our begin comes first.
        """
        cdef PeerSession session
        self._free_local(channel)
        # An earlier begin on this channel that has no answer is forgotten: if the peer's session began and ended in the
        # same bytes, the engine writes a begin and an end of a session that the peer never answers.
        self.own_windows.pop(channel, None)
        if answered_channel < 0:
            self.own_windows[channel] = window
            return 0
        session = self.session_at(answered_channel)
        if session is not None:
            self._join(session, channel, window)
        return 0

    def _on_own_attach(self, int channel, PeerSession session, bytes key, handle):
        cdef PeerLink link = self.links.get(key)
        if link is not None and link.session is session:
            link.local_handle = handle
        else:
            self.own_handles.setdefault(channel, {})[key] = handle

    # Methods for flows that the peer asked for, and that the engine does not write
    cdef int want_flow(self, object of) except -1:
        """Note that the peer is owed a flow for ``of``, a session or link, which then goes out with the next output.

        Callers note each once until the flow is sent, so that a peer that asks again and again takes no more memory.
        """
        self.restless.append(of)
        return 0

    def flow_of(self, PeerSession session, unsigned int remote_window, link_fields):
        """Return the bytes of a flow frame for ``session``, with ``link_fields``, the fields of a link, or {}. [2.7.4]

        ``remote_window`` is the number of transfer frames that the peer still takes.
        """
        fields = {
            "next-incoming-id": session.next_incoming_id,
            "incoming-window": session.told_window_end - session.next_incoming_id,
            "next-outgoing-id": session.window_end - remote_window,
            "outgoing-window": 0x7FFFFFFF,
        }
        return encode_frame(AmqpFrame(session.local_channel, CompositeValue(table.FLOW, fields | link_fields)))


cdef bytes key_of(const unsigned char *name, bint is_sender):
    """Return the key of a link in tables: the bytes of its name, then a byte that says whether the peer is the sender.

    ``name`` is the place of the encoded name.
    """
    cdef size_t size
    name = bytes_at(name, &size)
    cdef bytes key = PyBytes_FromStringAndSize(NULL, size + 1)
    memcpy(PyBytes_AS_STRING(key), name, size)
    PyBytes_AS_STRING(key)[size] = is_sender
    return key

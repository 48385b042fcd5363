"""What of a peer's bytes may reach the engine: whole frames, each of which was looked at. [2.3], [2.7]

The engine decodes leniently, and passes on what it did not decode. So every frame is held against the codec's table here
first, but for transfers of the common form, of which only the header is read. What the peer did wrong becomes ``fault``,
an error with the names of performative and field, and nothing that follows is read. The gate is total: no input raises
(but for want of memory), and no byte beyond a frame is read.

It also keeps, of each link that the peer attached, what the engine does not tell: name, handle and counts.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.string cimport memchr, memcpy

from wire.codec.composites cimport bytes_at, fault_in, is_true_at, number_at, scan_performative
from wire.codec.scan cimport big_endian, begin_scan
from wire.codec.scan cimport AS_LIST0, AS_LIST8, AS_STRING32, AS_STRING8, AS_ULONG
from wire.proton cimport pn

from wire.codec import table
from wire.codec.frames import Frame, Record, decode_frame, encode_frame, error
from wire.errors import ConnectionFault, LinkError

cdef enum:
    HEADER_BYTES = 8
    FRAME_HEADER_BYTES = 8
    # A performative that is read without a look at each byte's presence has so many behind it.
    PLAIN_BYTES = 72
    NEAR_HANDLES = 1024
    MOST_STOLEN = 1000
    MOST_CREDIT = 0x7FFFFFFF
    LEAST_MAX_FRAME_BYTES = 512
    LEAST_IDLE_TIMEOUT_MS = 100

cdef enum:
    # What a look at a frame comes to
    GOOD
    BAD
    REPLACED

cdef enum:
    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18

_OF_SESSIONS = ("next-incoming-id", "incoming-window", "next-outgoing-id", "outgoing-window")
_FRAMING = "amqp:connection:framing-error"
_NAMES = {performative.code: performative.name for performative in table.PERFORMATIVES}
_MADE_UP_OPEN = encode_frame(Frame(0, Record(table.OPEN, {"container-id": "a peer that did not open"})))
_STOLEN = "amqp:link:stolen"


cdef class PeerSession:
    def __cinit__(self, unsigned int channel):
        self.channel = channel
        self.answered_channel = -1
        self.near = []
        self.far = {}

    cdef PeerLink link_at(self, unsigned int handle):
        if handle < NEAR_HANDLES:
            return <PeerLink><object>PyList_GET_ITEM(self.near, handle) if handle < <size_t>PyList_GET_SIZE(self.near) else None
        return self.far.get(handle)

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
    def __cinit__(self, PeerSession session, unsigned int handle, bytes name, bint is_sender, unsigned int delivery_count):
        self.session = session
        self.handle = handle
        self.name = name
        self.is_sender = is_sender
        self.delivery_count = delivery_count


cdef class Gate:
    """Always: what the engine was given is the protocol header and whole frames, all of them well formed."""

    def __cinit__(self, size_t transport, unsigned int max_frame_bytes, unsigned int channel_max):
        self.transport = <pn_transport_t *>transport
        self.max_frame_bytes = max(max_frame_bytes, <unsigned int>LEAST_MAX_FRAME_BYTES)
        self.channel_max = channel_max
        self.header_left = HEADER_BYTES
        self.sessions = []
        self.links = {}
        self.answered = set()
        self.attached = []
        self.restless = []

    def __dealloc__(self):
        PyMem_Free(self.held)

    @property
    def is_in_frame(self):
        """The bytes so far end in the middle of a frame."""
        return self.held_bytes > 0 or 0 < self.header_left < HEADER_BYTES

    def make_up_open(self):
        """The engine sends no close to a peer that has not opened: give it an open, when there was none."""
        if not self.is_open and not self.header_left:
            self.is_open = self.is_open_made_up = True
            self._give(_MADE_UP_OPEN, len(_MADE_UP_OPEN))

    # Bytes
    cdef int feed(self, const unsigned char *at, size_t size) except -1:
        """Look at what came, and give the engine what is fine of it, in as few pieces as can be."""
        cdef const unsigned char *end = at + size
        cdef const unsigned char *clean
        cdef size_t frame_bytes
        cdef int verdict
        if self.fault is not None:
            return 0
        if self.header_left:
            at = self._feed_header(at, end)
        if self.held_bytes:
            at = self._feed_held(at, end)
        clean = at
        while self.fault is None and end - at >= FRAME_HEADER_BYTES:
            frame_bytes = big_endian(at, 4)
            if not FRAME_HEADER_BYTES <= frame_bytes <= self.max_frame_bytes:
                self._blame_size(frame_bytes)
                break
            if frame_bytes > <size_t>(end - at):
                break
            verdict = self._look(at, frame_bytes)
            if verdict == BAD:
                break
            if verdict == REPLACED:
                self._give(clean, at - clean)
                self._give(self.replacement, len(self.replacement))
                clean = at + frame_bytes
            at += frame_bytes
        self._give(clean, at - clean)
        if self.fault is None and at < end:
            self._hold(at, end - at)
        return 0

    cdef const unsigned char *_feed_header(self, const unsigned char *at, const unsigned char *end) except NULL:
        """The protocol header is the engine's to judge. [2.2]"""
        cdef size_t taken = min(<size_t>self.header_left, <size_t>(end - at))
        self._give(at, taken)
        self.header_left -= taken
        return at + taken

    cdef const unsigned char *_feed_held(self, const unsigned char *at, const unsigned char *end) except NULL:
        """Complete the frame that began in bytes before these."""
        cdef size_t missing, frame_bytes, taken
        cdef int verdict
        if self.held_bytes < FRAME_HEADER_BYTES:
            taken = min(<size_t>(FRAME_HEADER_BYTES - self.held_bytes), <size_t>(end - at))
            self._hold(at, taken)
            at += taken
            if self.held_bytes < FRAME_HEADER_BYTES:
                return at
        frame_bytes = big_endian(self.held, 4)
        if not FRAME_HEADER_BYTES <= frame_bytes <= self.max_frame_bytes:
            self._blame_size(frame_bytes)
            return end
        missing = frame_bytes - self.held_bytes
        taken = min(missing, <size_t>(end - at))
        self._hold(at, taken)
        if taken < missing:
            return end
        at += taken
        verdict = self._look(self.held, frame_bytes)
        if verdict == GOOD:
            self._give(self.held, frame_bytes)
        elif verdict == REPLACED:
            self._give(self.replacement, len(self.replacement))
        self.held_bytes = 0
        return at

    cdef int _hold(self, const unsigned char *at, size_t size) except -1:
        """Keep bytes of a frame whose rest is to come. The room grows with what is here, not with what is announced."""
        cdef size_t room
        cdef void *grown
        if self.held_bytes + size > self.held_room:
            room = max(self.held_bytes + size, min(2 * self.held_room, <size_t>self.max_frame_bytes))
            grown = PyMem_Realloc(self.held, room)
            if grown is NULL:
                raise MemoryError()
            self.held, self.held_room = <unsigned char *>grown, room
        memcpy(self.held + self.held_bytes, at, size)
        self.held_bytes += size
        return 0

    cdef int _give(self, const unsigned char *at, size_t size) except -1:
        cdef ssize_t taken
        while size > 0:
            taken = pn.transport_push(self.transport, <const char *>at, size)
            if taken <= 0:
                break
            at += taken
            size -= taken
        return 0

    # Frames
    cdef int _look(self, const unsigned char *frame, size_t size) except -1:
        cdef size_t offset = 4 * <size_t>frame[4]
        cdef const unsigned char *body = frame + offset
        cdef const unsigned char *end = frame + size
        if not FRAME_HEADER_BYTES <= offset <= size:
            return self._blame(_FRAMING, f"a frame of {size} bytes says that its body begins at byte {offset}")
        if frame[5] != 0:
            return self._blame(_FRAMING, f"a frame of type {frame[5]}, expected 0 (AMQP)")
        if body == end:
            return GOOD
        if end - body >= PLAIN_BYTES and body[0] == 0 and body[1] == 0x53 and body[2] == TRANSFER:
            if self._is_plain_transfer(body + 3, end, <unsigned int>frame[6] << 8 | frame[7]):
                return GOOD
        return self._look_at_performative(frame, body, end)

    cdef bint _is_plain_transfer(self, const unsigned char *at, const unsigned char *end, unsigned int channel) except -1:
        """A transfer of the common form that breaks no rule; all others get a closer look.

        PLAIN_BYTES are there, and the fields of the common form take less.
        """
        cdef const unsigned char *goal
        cdef unsigned int handle, count
        cdef bint has_tag, more = False
        cdef PeerLink link
        cdef PeerSession session
        if at[0] != 0xC0:
            return False
        goal = at + 2 + at[1]
        count = at[2]
        at += 3
        if goal > end or not 3 <= count <= 6:
            return False
        if at[0] == 0x52:
            handle = at[1]
            at += 2
        elif at[0] == 0x43:
            handle = 0
            at += 1
        else:
            return False
        if at[0] == 0x52:
            at += 2
        elif at[0] == 0x70:
            at += 5
        elif at[0] == 0x43:
            at += 1
        else:
            return False
        if at[0] != 0xA0 or at[1] > 32:
            return False
        at += 2 + at[1]
        if count > 3:
            if at[0] != 0x43 and at[0] != 0x40:  # message-format
                return False
            at += 1
        if count > 4:
            if not 0x40 <= at[0] <= 0x42:  # settled
                return False
            at += 1
        if count > 5:
            if not 0x40 <= at[0] <= 0x42:  # more
                return False
            more = at[0] == 0x41
            at += 1
        if at != goal or channel >= <size_t>PyList_GET_SIZE(self.sessions):
            return False
        session = <PeerSession><object>PyList_GET_ITEM(self.sessions, channel)
        if session is None:
            return False
        link = session.link_at(handle)
        if link is None or not link.is_sender or link.is_stolen:
            return False
        if not link.is_partial:
            link.delivery_count += 1
        link.is_partial = more
        session.next_incoming_id += 1
        return True

    cdef int _look_at_performative(
        self, const unsigned char *frame, const unsigned char *body, const unsigned char *end
    ) except -1:
        cdef Scan scan
        cdef Fields fields
        cdef Fault fault
        cdef unsigned long long code
        cdef unsigned int channel = frame[6] << 8 | frame[7]
        cdef const unsigned char *rest
        begin_scan(&scan, end)
        rest = scan_performative(&scan, body, &code, &fields, &fault)
        if rest is NULL:
            error = fault_in(&scan, &fault)
            return self._blame(error.condition, str(error))
        if not OPEN <= code <= CLOSE:
            return self._blame("amqp:decode-error", f"a frame with descriptor 0x{code:02x}, which is not a performative")
        if rest != end and code != TRANSFER:
            return self._blame("amqp:decode-error", f"{_NAMES[code]}: {end - rest} bytes follow the last field")
        if code == OPEN:
            return self._on_open(channel, &fields)
        if not self.is_open:
            article = "an" if _NAMES[code][0] in "ae" else "a"
            return self._blame(_FRAMING, f"{article} {_NAMES[code]} came before the open")
        if code == TRANSFER:
            return self._on_transfer(channel, &fields)
        if code == DISPOSITION:
            return self._on_disposition(&fields)
        if code == FLOW:
            return self._on_flow(channel, &fields, frame, end - frame)
        if code == ATTACH:
            return self._on_attach(channel, &fields, frame, end - frame)
        if code == DETACH:
            return self._on_detach(channel, &fields)
        if code == BEGIN:
            return self._on_begin(channel, &fields)
        if code == END:
            return self._on_end(channel)
        self.is_closed = True
        return GOOD

    cdef PeerSession _session_at(self, unsigned int channel):
        if channel < <size_t>PyList_GET_SIZE(self.sessions):
            return <PeerSession><object>PyList_GET_ITEM(self.sessions, channel)
        return None

    cdef int _blame(self, str condition, str sentence) except -1:
        self.fault = ConnectionFault(condition, sentence)
        return BAD

    def _blame_size(self, size):
        if size < FRAME_HEADER_BYTES:
            self._blame(_FRAMING, f"a frame of {size} bytes, expected {FRAME_HEADER_BYTES} at least")
        else:
            self._blame(_FRAMING, f"a frame of {size} bytes, expected {self.max_frame_bytes} at most")

    # Performatives, of the right form. A channel or handle that is not known is left to the engine, which says so.
    cdef int _on_open(self, unsigned int channel, Fields *fields) except -1:
        if self.is_open:
            return self._blame("amqp:illegal-state", "a second open came")
        if channel != 0:
            return self._blame(_FRAMING, f"an open came on channel {channel}, expected 0")
        if _has_nul(fields.at[0]) or _has_nul(fields.at[1]):
            return self._blame_nul("open.hostname" if _has_nul(fields.at[1]) else "open.container-id")
        if fields.at[2] is not NULL and number_at(fields.at[2]) == 0:  # others that are too small count as 512
            return self._blame_little("open.max-frame-size", 0, LEAST_MAX_FRAME_BYTES)
        if fields.at[4] is not NULL and 0 < number_at(fields.at[4]) < LEAST_IDLE_TIMEOUT_MS:
            return self._blame_little("open.idle-time-out", number_at(fields.at[4]), LEAST_IDLE_TIMEOUT_MS)
        self.is_open = True
        return GOOD

    cdef int _on_begin(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session
        if channel > self.channel_max:
            return GOOD
        if self._session_at(channel) is not None:
            return self._blame("amqp:illegal-state", f"begin: channel {channel} is in use")
        session = PeerSession(channel)
        if fields.at[0] is not NULL:
            session.answered_channel = number_at(fields.at[0])
            if session.answered_channel in self.answered:
                return self._blame("amqp:invalid-field", f"begin.remote-channel: {session.answered_channel} was answered before")
            self.answered.add(session.answered_channel)
        session.next_incoming_id = number_at(fields.at[1])
        session.window_end = number_at(fields.at[2])
        while <size_t>PyList_GET_SIZE(self.sessions) <= channel:
            self.sessions.append(None)
        self.sessions[channel] = session
        return GOOD

    cdef int _on_attach(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1:
        cdef PeerSession session = self._session_at(channel)
        cdef PeerLink link, old
        cdef unsigned int handle = number_at(fields.at[1])
        cdef bint is_sender = not is_true_at(fields.at[2])
        if _has_nul(fields.at[0]):
            return self._blame_nul("attach.name")
        if _has_nul(_address_in(fields.at[5])) or _has_nul(_address_in(fields.at[6])):
            return self._blame_nul("attach.source.address" if _has_nul(_address_in(fields.at[5])) else "attach.target.address")
        if is_sender and fields.at[9] is NULL:
            return self._blame("amqp:invalid-field", "attach.initial-delivery-count: a sender has to give it")
        if session is None or handle > MOST_CREDIT:
            return GOOD
        if session.link_at(handle) is not None:
            return self._blame("amqp:session:handle-in-use", f"attach.handle: {handle} is in use on channel {channel}")
        link = PeerLink(session, handle, _text_at(fields.at[0]), is_sender, number_at(fields.at[9]) if is_sender else 0)
        session.put(link)
        self.attached.append(link)
        key = (link.name, is_sender)
        old = self.links.get(key)
        self.links[key] = link
        return GOOD if old is None else self._steal(old, frame, size)

    cdef int _on_flow(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1:
        cdef PeerSession session = self._session_at(channel)
        cdef PeerLink link
        cdef unsigned int credit = 0
        cdef int verdict = GOOD
        if session is None:
            return GOOD
        session.window_end = number_at(fields.at[1])
        if fields.at[0] is not NULL:
            session.window_end += <unsigned int>number_at(fields.at[0])
        if fields.at[4] is NULL:
            return GOOD
        link = session.link_at(number_at(fields.at[4]))
        if link is None:
            return GOOD
        if link.is_stolen:
            return self._replace(_without_link(frame[:size]))
        if fields.at[6] is not NULL:
            credit = number_at(fields.at[6])
        if credit > MOST_CREDIT:
            # The engine counts credit with a sign.
            credit = MOST_CREDIT
            verdict = self._replace(_with_most_credit(frame[:size], fields.at[6] + 1 - frame))
        if not link.is_sender:
            link.credit_end = credit + (0 if fields.at[5] is NULL else <unsigned int>number_at(fields.at[5]))
        elif fields.at[5] is not NULL and <int>(<unsigned int>number_at(fields.at[5]) - link.delivery_count) > 0:
            link.delivery_count = number_at(fields.at[5])
        return verdict

    cdef int _on_transfer(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session = self._session_at(channel)
        cdef unsigned int handle = number_at(fields.at[0])
        cdef PeerLink link = None if session is None else session.link_at(handle)
        if link is None:
            return GOOD
        if not link.is_sender:
            return self._blame("amqp:not-allowed", f"transfer.handle: {handle} is of a link on which the peer receives")
        if link.is_stolen:
            return self._blame(
                "amqp:session:unattached-handle", f"transfer.handle: the link of {handle} was attached again as another"
            )
        if not link.is_partial:
            if fields.at[1] is NULL or fields.at[2] is NULL:
                what = "transfer.delivery-id" if fields.at[1] is NULL else "transfer.delivery-tag"
                return self._blame("amqp:invalid-field", f"{what}: the first transfer of a delivery has to give it")
            link.delivery_count += 1
        link.is_partial = (
            fields.at[5] is not NULL and is_true_at(fields.at[5])
            and not (fields.at[9] is not NULL and is_true_at(fields.at[9]))
        )
        session.next_incoming_id += 1
        return GOOD

    cdef int _on_disposition(self, Fields *fields) except -1:
        cdef unsigned int first = number_at(fields.at[1]), last = first
        if fields.at[2] is not NULL:
            last = number_at(fields.at[2])
        if last - first > <unsigned int>0x7FFFFFFF:  # serial numbers [2.8.10]
            return self._blame("amqp:invalid-field", f"disposition.last: {last} is before the first, {first}")
        return GOOD

    cdef int _on_detach(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session = self._session_at(channel)
        cdef unsigned int handle = number_at(fields.at[0])
        cdef PeerLink link = None if session is None else session.link_at(handle)
        if link is None:
            return GOOD
        session.drop(handle)
        if link.is_stolen:
            self.stolen_count -= 1
            return self._replace(b"")
        self._forget(link)
        return GOOD

    cdef int _on_end(self, unsigned int channel) except -1:
        cdef PeerSession session = self._session_at(channel)
        cdef PeerLink link
        if session is None:
            return GOOD
        for link in session.links():
            self.stolen_count -= link.is_stolen
            self._forget(link)
        self.answered.discard(session.answered_channel)
        self.sessions[channel] = None
        return GOOD

    def _forget(self, PeerLink link):
        key = (link.name, link.is_sender)
        if self.links.get(key) is link:
            del self.links[key]

    cdef int _replace(self, bytes replacement) except -1:
        self.replacement = replacement
        return REPLACED

    cdef int _steal(self, PeerLink old, const unsigned char *frame, size_t size) except -1:
        """The peer attached a link again: the engine hears first that the old one is detached. [2.6.1]"""
        self.stolen_count += 1
        if self.stolen_count > MOST_STOLEN:
            return self._blame("amqp:resource-limit-exceeded", "links are attached again and again without a detach")
        old.is_stolen = True
        name = old.name.decode()
        reason = error(_STOLEN, f"link {name!r} was attached again")
        fields = {"handle": old.handle, "closed": False, "error": reason}
        detach = encode_frame(Frame(old.session.channel, Record(table.DETACH, fields)))
        return self._replace(detach + frame[:size])

    def _blame_nul(self, place):
        return self._blame("amqp:invalid-field", f"{place}: a zero byte in a name")

    def _blame_little(self, place, value, least):
        return self._blame("amqp:invalid-field", f"{place}: {value}, expected {least} at least")


cdef bint _has_nul(const unsigned char *text) noexcept:
    """Of a string, which may be absent: the engine ends it at its first zero byte."""
    cdef size_t size
    if text is NULL:
        return False
    text = bytes_at(text, &size)
    return memchr(text, 0, size) is not NULL


cdef const unsigned char *_address_in(const unsigned char *terminus) noexcept:
    """Of a terminus, which may be absent: its first field, unless that is null or the terminus a coordinator."""
    cdef const unsigned char *at = terminus
    cdef unsigned long long count
    if at is NULL:
        return NULL
    at += 1 + (9 if at[1] == AS_ULONG else 2)
    if at[0] == AS_LIST0 or big_endian(at + (2 if at[0] == AS_LIST8 else 5), 1 if at[0] == AS_LIST8 else 4) == 0:
        return NULL
    at += 3 if at[0] == AS_LIST8 else 9
    return at if at[0] == AS_STRING8 or at[0] == AS_STRING32 else NULL


def _without_link(bytes frame):
    """What a flow says of its session only."""
    flow = decode_frame(frame)
    fields = {name: flow.performative[name] for name in _OF_SESSIONS if flow.performative[name] is not None}
    return encode_frame(Frame(flow.channel, Record(table.FLOW, fields)))


def _with_most_credit(bytes frame, size_t offset):
    return frame[:offset] + (<int>MOST_CREDIT).to_bytes(4, "big") + frame[offset + 4 :]


cdef bytes _text_at(const unsigned char *text):
    cdef size_t size
    text = bytes_at(text, &size)
    return PyBytes_FromStringAndSize(<const char *>text, size)

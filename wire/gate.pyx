"""Gate from a peer to proton's engine: after the protocol header, only whole, checked frames pass. [2.3], [2.7]

The engine decodes leniently, and passes on bytes that it did not decode. So every frame is first checked against the
codec's table here; `wire.plain` does so more cheaply for transfers and dispositions of the common form. A fault of the
peer becomes ``fault``, an error with the names of performative and field: the endpoint closes the connection with it,
and nothing behind the fault is read. No input raises an exception, except for want of memory, and no byte beyond a
frame is read.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.string cimport memcpy

from wire.codec.composites cimport fault_in, scan_performative
from wire.codec.scan cimport big_endian, begin_scan
from wire.peers cimport PeerLink, PeerSession
from wire.plain cimport (
    PLAIN_DISPOSITION,
    PLAIN_HEAD_BYTES,
    PLAIN_TRANSFER,
    PlainTransfer,
    four_bytes,
    is_plain_disposition,
    is_plain_transfer,
)
from wire.proton cimport pn
from wire.rules cimport BAD, GOOD, REPLACED

from wire.codec import table
from wire.codec.frames import AmqpFrame, CompositeValue, encode_frame
from wire.rules import FRAMING

cdef extern from "Python.h":
    # Macros that read a list by borrowed references, without a change of any reference count.
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t) noexcept
    Py_ssize_t PyList_GET_SIZE(PyObject *) noexcept

cdef enum:
    HEADER_BYTES = 8
    FRAME_HEADER_BYTES = 8
    LEAST_MAX_FRAME_BYTES = 512

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

_NAMES = {performative.code: performative.name for performative in table.PERFORMATIVES}
_MADE_UP_OPEN = encode_frame(AmqpFrame(0, CompositeValue(table.OPEN, {"container-id": "a peer that did not open"})))


@cython.final
cdef class FrameGate(Rules):
    """Checks the bytes of one peer behind the protocol header, frame by frame, up to the first fault.

    The good frames go to the engine, some of them replaced by others.

    Always: the engine was given the protocol header and whole, well-formed frames, and nothing else.
    """

    def __cinit__(self, size_t transport, unsigned int max_frame_bytes, unsigned int channel_max):
        self.transport = <pn_transport_t *>transport
        self.max_frame_bytes = max(max_frame_bytes, <unsigned int>LEAST_MAX_FRAME_BYTES)
        self.channel_max = channel_max
        self.header_left = HEADER_BYTES

    def __dealloc__(self):
        PyMem_Free(self.held)

    @property
    def is_in_frame(self):
        """Whether the peer's bytes so far end in the middle of a frame, or of the protocol header."""
        return self.held_bytes > 0 or 0 < self.header_left < HEADER_BYTES

    def make_up_open(self):
        """Give the engine an OPEN in the peer's place if the peer sent none: without an OPEN the engine sends no close.

        Do nothing before the peer has sent its protocol header.
        """
        if not self.is_open and not self.header_left:
            self.is_open = self.is_open_made_up = True
            self._give(<bytes>_MADE_UP_OPEN, len(_MADE_UP_OPEN))

    # Bytes
    cdef ssize_t feed(self, const unsigned char *at, size_t size, unsigned int most_changes) except -1:
        """Check bytes of the peer; give the good frames among them, or their replacements, to the engine.

        The engine gets the frames in as few calls as possible. Stop behind ``most_changes`` frames that begin or end a
        session or link, and return the number of bytes taken; the caller gives the others again. A frame that is not
        complete yet is kept. Nothing is read after a fault.
        """
        cdef const unsigned char *begin = at
        cdef const unsigned char *end = at + size
        cdef const unsigned char *clean
        cdef unsigned long long last_change = self.changes + most_changes
        cdef size_t frame_bytes
        cdef int verdict
        if self.fault is not None:
            return size
        if self.header_left:
            at = self._feed_header(at, end)
        if self.held_bytes:
            at = self._feed_held(at, end)
        clean = at
        while self.fault is None and end - at >= FRAME_HEADER_BYTES and self.changes < last_change:
            frame_bytes = four_bytes(at)
            if not FRAME_HEADER_BYTES <= frame_bytes <= self.max_frame_bytes:
                self._blame_size(frame_bytes)
                break
            if frame_bytes > <size_t>(end - at):
                break
            if self._is_plain(at, frame_bytes):
                at += frame_bytes
                continue
            verdict = self._look(at, frame_bytes)
            if verdict == BAD:
                break
            if verdict == REPLACED:
                self._give(clean, at - clean)
                self._give(self.replacement, len(self.replacement))
                clean = at + frame_bytes
            at += frame_bytes
        self._give(clean, at - clean)
        if self.fault is not None:
            return size
        if self.changes >= last_change:
            return at - begin
        if at < end:
            self._hold(at, end - at)
        return size

    cdef const unsigned char *_feed_header(self, const unsigned char *at, const unsigned char *end) except NULL:
        """Give what is missing of the peer's protocol header to the engine, which checks the header. [2.2]

        Return the place behind the bytes that were given.
        """
        cdef size_t taken = min(<size_t>self.header_left, <size_t>(end - at))
        self._give(at, taken)
        self.header_left -= taken
        return at + taken

    cdef const unsigned char *_feed_held(self, const unsigned char *at, const unsigned char *end) except NULL:
        """Complete the frame that began in earlier bytes, check it, and give it or its replacement to the engine.

        Return the place behind its bytes. If the frame is not complete yet, keep the bytes.
        """
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
        """Append bytes of an incomplete frame to the bytes kept of it.

        The buffer grows with the bytes that came, not with the size that the frame announces.
        """
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
            return self._blame(FRAMING, f"a frame of {size} bytes has data offset {offset}, expected 8 to {size}")
        if frame[5] != 0:
            return self._blame(FRAMING, f"a frame of type {frame[5]}, expected 0 (AMQP)")
        if body == end:
            return GOOD
        return self._look_at_performative(frame, body, end)

    cdef bint _is_plain(self, const unsigned char *frame, size_t size) noexcept:
        """Say whether a frame is a transfer or disposition of the common form that breaks no rule.

        Such a transfer is counted in the data about its session and link.

        Any other frame is left to `_look`, and is not counted here. All references here are borrowed, which is safe,
        since nothing called here drops a reference.
        """
        cdef const unsigned char *body = frame + FRAME_HEADER_BYTES
        cdef Py_ssize_t channel = <Py_ssize_t>frame[6] << 8 | frame[7]
        cdef PlainTransfer transfer
        cdef unsigned int head
        cdef PyObject *sessions = <PyObject *>self.sessions
        cdef PyObject *session
        cdef PyObject *links
        cdef PyObject *link
        if size < FRAME_HEADER_BYTES + PLAIN_HEAD_BYTES or frame[4] != 2 or frame[5] != 0:
            return False
        head = four_bytes(body)
        if head == PLAIN_DISPOSITION:
            return self.is_open and is_plain_disposition(body, frame + size)
        if head != PLAIN_TRANSFER or not is_plain_transfer(body, frame + size, &transfer):
            return False
        if channel >= PyList_GET_SIZE(sessions):
            return False
        session = PyList_GET_ITEM(sessions, channel)
        if session == <PyObject *>None:
            return False
        links = <PyObject *>(<PeerSession>session).near
        if transfer.handle >= <size_t>PyList_GET_SIZE(links):
            return False
        link = PyList_GET_ITEM(links, transfer.handle)
        if link == <PyObject *>None or not (<PeerLink>link).is_sender or (<PeerLink>link).is_stolen:
            return False
        if not (<PeerLink>link).is_partial:
            if not transfer.is_first:
                return False
            (<PeerLink>link).delivery_count = (<PeerLink>link).delivery_count + 1
        (<PeerLink>link).is_partial = transfer.has_more
        (<PeerSession>session).next_incoming_id = (<PeerSession>session).next_incoming_id + 1
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
            return self._blame(FRAMING, f"{article} {_NAMES[code]} came before the open")
        if code == TRANSFER:
            return self._on_transfer(channel, &fields)
        if code == DISPOSITION:
            return self._on_disposition(&fields)
        if code == FLOW:
            return self._on_flow(channel, &fields, frame, end - frame)
        self.changes += 1
        if code == ATTACH:
            return self._on_attach(channel, &fields, frame, end - frame)
        if code == DETACH:
            return self._on_detach(channel, &fields)
        if code == BEGIN:
            return self._on_begin(channel, &fields)
        if code == END:
            return self._on_end(channel)
        return GOOD

    def _blame_size(self, size):
        if size < FRAME_HEADER_BYTES:
            self._blame(FRAMING, f"a frame of {size} bytes, expected {FRAME_HEADER_BYTES} at least")
        else:
            self._blame(FRAMING, f"a frame of {size} bytes, expected {self.max_frame_bytes} at most")

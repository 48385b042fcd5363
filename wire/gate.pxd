from wire.codec.composites cimport Fault, Fields
from wire.codec.scan cimport Scan
from wire.proton cimport pn_transport_t
from wire.rules cimport Rules


cdef class FrameGate(Rules):
    cdef pn_transport_t *transport
    cdef unsigned int max_frame_bytes
    cdef unsigned int header_left
    cdef readonly bint is_open_made_up
    # Buffer for the bytes so far of an incoming frame that is not complete yet: its bytes, their number, its size.
    cdef unsigned char *held
    cdef size_t held_bytes
    cdef size_t held_room
    # Number of frames so far that began or ended a session or link, or opened the connection: costly frames.
    cdef unsigned long long changes

    cdef ssize_t feed(self, const unsigned char *at, size_t size, unsigned int most_changes) except -1
    cdef const unsigned char *_feed_header(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef const unsigned char *_feed_held(self, const unsigned char *at, const unsigned char *end) except NULL
    cdef int _hold(self, const unsigned char *at, size_t size) except -1
    cdef int _give(self, const unsigned char *at, size_t size) except -1
    cdef int _look(self, const unsigned char *frame, size_t size) except -1
    cdef bint _is_plain(self, const unsigned char *frame, size_t size) noexcept
    cdef int _look_at_performative(
        self, const unsigned char *frame, const unsigned char *body, const unsigned char *end
    ) except -1

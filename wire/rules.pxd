from wire.codec.composites cimport Fields
from wire.peers cimport PeerLink, PeerSession, Peers

cdef enum:
    # Result of a check of a frame
    GOOD
    BAD
    REPLACED


cdef class Rules(Peers):
    cdef readonly object fault
    # Bytes that the engine gets in place of a frame with the verdict REPLACED.
    cdef bytes replacement
    cdef unsigned int channel_max
    cdef bint is_open
    cdef unsigned int stolen_count

    cdef int _on_open(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_begin(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_attach(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1
    cdef int _on_flow(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1
    cdef int _on_transfer(self, unsigned int channel, Fields *fields) except -1
    cdef int _judge(self, PeerLink link, Fields *fields) except -1
    cdef int _on_disposition(self, Fields *fields) except -1
    cdef int _on_detach(self, unsigned int channel, Fields *fields) except -1
    cdef int _on_end(self, unsigned int channel) except -1
    cdef int _steal(self, PeerLink old, const unsigned char *frame, size_t size) except -1
    cdef int _replace(self, bytes replacement) except -1
    cdef int _blame(self, str condition, str sentence) except -1

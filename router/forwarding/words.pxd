from wire.proton cimport pn_delivery_t


cdef enum Word:
    NO_WORD
    UNWRITTEN_WORD
    LOST_WORD
    TOO_LARGE_WORD


cdef Word word_of(pn_delivery_t *outgoing) except *

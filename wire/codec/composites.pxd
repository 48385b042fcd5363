from wire.codec.scan cimport Scan

cdef enum:
    MOST_FIELDS = 14
    # Deepest nesting of composite types: a transfer, its transactional state, the outcome there, the error in that.
    MOST_LEVELS = 4


cdef struct Fault:
    # Place of a fault: composite type and field for each level, from the performative inwards, as indexes of the table.
    # Field -1: the list itself, and none of its fields.
    int depth
    int composite[MOST_LEVELS]
    int field[MOST_LEVELS]


cdef struct Fields:
    # Place of each field, at its constructor; NULL when the field is missing or null.
    const unsigned char *at[MOST_FIELDS]


cdef const unsigned char *scan_performative(
    Scan *scan, const unsigned char *at, unsigned long long *code, Fields *fields, Fault *fault
) noexcept
cdef bint read_first_fields(
    Scan *scan, const unsigned char *at, unsigned long long *code, Fields *fields, int most
) noexcept
cdef object fault_in(const Scan *scan, const Fault *fault)
cdef unsigned long long number_at(const unsigned char *at) noexcept
cdef bint is_true_at(const unsigned char *at) noexcept
cdef const unsigned char *bytes_at(const unsigned char *at, size_t *size) noexcept

from wire.codec.scan cimport Scan

cdef enum:
    MOST_FIELDS = 14
    # A transfer, its transactional state, the outcome therein, the error of that.
    MOST_LEVELS = 4


cdef struct Fault:
    # Whose field, from the performative inwards: indexes of the table. A field of -1: the list itself.
    int depth
    int composite[MOST_LEVELS]
    int field[MOST_LEVELS]


cdef struct Fields:
    # Where each field stands, from its constructor on; NULL when it is missing or null.
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

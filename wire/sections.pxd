cdef enum:
    # Most bytes of a message's head (header, annotations, properties) that nodes keep while a message comes in pieces.
    MOST_HEAD_BYTES = 131072


cdef enum:
    # Descriptors of the sections before the body.
    HEADER = 0x70
    DELIVERY_ANNOTATIONS = 0x71
    MESSAGE_ANNOTATIONS = 0x72
    PROPERTIES = 0x73


cdef enum Finding:
    # Result of a scan of a message's head. CUT: more bytes are needed; each value behind CUT is a fault.
    WHOLE
    CUT
    NO_SECTION
    WRONG_DESCRIPTOR
    NO_LIST
    TOO_MANY_ITEMS
    WRONG_SIZE
    NOT_UTF8
    UNKNOWN_TYPE


cdef struct Field:
    # Constructor code, place and size of a field's value in its message. Code 0: the field has no value.
    unsigned char code
    size_t start
    size_t size_bytes


cdef struct Head:
    # Result of a scan, valid only for the finding WHOLE; else ``culprit`` and ``limit`` are numbers for the error text.
    Finding finding
    unsigned long long culprit
    unsigned long long limit
    bint is_durable
    bint is_first_acquirer
    bint has_ttl
    bint has_expiry
    unsigned char priority
    unsigned int ttl_ms
    unsigned int delivery_count
    # absolute-expiry-time, as Unix time.
    long long expires_at_ms
    size_t header_end
    size_t annotations_start
    size_t annotations_end
    Field ttl
    Field message_id
    Field to
    Field subject
    Field reply_to
    Field group_id


cdef struct Reader:
    # The place of a scan: ``offset <= size``. ``head`` gets the findings.
    const unsigned char *message
    size_t size
    size_t offset
    Head *head


cdef Reader reader_of(const unsigned char *message, size_t size, Head *head) noexcept
cdef bint read_descriptor(Reader *reader, unsigned long long *section) noexcept
cdef bint skip_values(Reader *reader, size_t count) noexcept
cdef Finding scan_head(const unsigned char *message, size_t size, Head *head) noexcept
cdef bint lower_ttl(unsigned char *message, size_t size, unsigned long long held_ms, long long wall_ms) noexcept
cdef bint limit_ttl(unsigned char *message, size_t size, unsigned long long left_ms) noexcept
cdef int priority_of(const unsigned char *message, size_t size) noexcept
cdef bint is_text(const Field *field) noexcept
cdef object fault_in(const Head *head)

cdef enum Finding:
    # Result of a scan; every value but the first is a fault.
    FINE
    CUT
    UNKNOWN_CONSTRUCTOR
    WRONG_SIZE
    WRONG_COUNT
    ODD_MAP
    COMPOUND_KEY
    TOO_DEEP
    TOO_MANY_VALUES
    NOT_UTF8
    NOT_ASCII
    NOT_A_CHARACTER
    NOT_A_BOOLEAN
    WRONG_DESCRIPTOR
    TWICE_DESCRIBED
    # Findings about composite types
    NOT_DESCRIBED
    UNKNOWN_TYPE
    SYMBOLIC_TYPE
    NOT_A_LIST
    TOO_MANY_FIELDS
    MISSING_FIELD
    WRONG_TYPE
    TOO_LARGE
    TOO_LONG


cdef enum:
    MAX_DEPTH = 32
    MAX_VALUES = 32768

cdef enum:
    # Constructors. [1.6]
    AS_DESCRIBED = 0x00
    AS_NULL = 0x40
    AS_TRUE = 0x41
    AS_FALSE = 0x42
    AS_UINT0 = 0x43
    AS_ULONG0 = 0x44
    AS_LIST0 = 0x45
    AS_UBYTE = 0x50
    AS_BYTE = 0x51
    AS_SMALL_UINT = 0x52
    AS_SMALL_ULONG = 0x53
    AS_SMALL_INT = 0x54
    AS_SMALL_LONG = 0x55
    AS_BOOLEAN = 0x56
    AS_USHORT = 0x60
    AS_SHORT = 0x61
    AS_UINT = 0x70
    AS_INT = 0x71
    AS_FLOAT = 0x72
    AS_CHAR = 0x73
    AS_DECIMAL32 = 0x74
    AS_ULONG = 0x80
    AS_LONG = 0x81
    AS_DOUBLE = 0x82
    AS_TIMESTAMP = 0x83
    AS_DECIMAL64 = 0x84
    AS_DECIMAL128 = 0x94
    AS_UUID = 0x98
    AS_BINARY8 = 0xA0
    AS_STRING8 = 0xA1
    AS_SYMBOL8 = 0xA3
    AS_BINARY32 = 0xB0
    AS_STRING32 = 0xB1
    AS_SYMBOL32 = 0xB3
    AS_LIST8 = 0xC0
    AS_MAP8 = 0xC1
    AS_LIST32 = 0xD0
    AS_MAP32 = 0xD1
    AS_ARRAY8 = 0xE0
    AS_ARRAY32 = 0xF0


cdef struct Scan:
    # State of a scan. ``end``: no byte is read at or behind this place. ``left``: how many values may still come, of
    # all levels together.
    const unsigned char *end
    unsigned int left
    Finding finding
    # Numbers that `sentence_of` puts into the text about the finding.
    unsigned long long culprit
    unsigned long long limit


cdef void begin_scan(Scan *scan, const unsigned char *end) noexcept
cdef const unsigned char *blame(Scan *scan, Finding finding, unsigned long long culprit, unsigned long long limit) noexcept
cdef const unsigned char *scan_value(Scan *scan, const unsigned char *at, unsigned int depth) noexcept
cdef const unsigned char *scan_body(Scan *scan, unsigned char code, const unsigned char *at, unsigned int depth) noexcept
cdef const unsigned char *scan_descriptor(Scan *scan, const unsigned char *at, unsigned long long *code, bint *is_symbol) noexcept
cdef unsigned long long big_endian(const unsigned char *raw, size_t size) noexcept
cdef object sentence_of(const Scan *scan)
cdef bint is_invalid_field(Finding finding) noexcept

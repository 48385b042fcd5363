"""Scan of an encoded AMQP value: every size and count has to fit, every constructor has to exist. [1.2], [1.6]

The bytes come from a stranger. Always: ``at <= scan.end``, and no byte is read before `_room` has confirmed the byte.
A scan neither allocates nor raises; it returns the end of the value, or NULL with a finding. Limits stricter than the
spec: at most MAX_DEPTH levels, at most MAX_VALUES values (an array of four billion nulls has few bytes), only ulongs
and symbols as descriptors, no compound values as keys of maps.
"""

from libc.string cimport memcpy
from libc.stdint cimport uint64_t

# ``widths`` has for each constructor the number of bytes behind the constructor, 0 to 16, if that number is fixed; for
# other constructors, one of these kinds of value.
cdef enum:
    VARIABLE8 = 32
    VARIABLE32
    COMPOUND8
    COMPOUND32
    ARRAYS8
    ARRAYS32
    INVALID = 255

cdef unsigned char widths[256]


cdef void _fill_widths() noexcept:
    cdef int code
    for code in range(256):
        widths[code] = INVALID
    for code in (AS_NULL, AS_TRUE, AS_FALSE, AS_UINT0, AS_ULONG0, AS_LIST0):
        widths[code] = 0
    for code in (AS_UBYTE, AS_BYTE, AS_SMALL_UINT, AS_SMALL_ULONG, AS_SMALL_INT, AS_SMALL_LONG):
        widths[code] = 1
    widths[AS_BOOLEAN] = 1
    for code in (AS_USHORT, AS_SHORT):
        widths[code] = 2
    for code in (AS_UINT, AS_INT, AS_FLOAT, AS_CHAR, AS_DECIMAL32):
        widths[code] = 4
    for code in (AS_ULONG, AS_LONG, AS_DOUBLE, AS_TIMESTAMP, AS_DECIMAL64):
        widths[code] = 8
    for code in (AS_DECIMAL128, AS_UUID):
        widths[code] = 16
    for code in (AS_BINARY8, AS_STRING8, AS_SYMBOL8):
        widths[code] = VARIABLE8
    for code in (AS_BINARY32, AS_STRING32, AS_SYMBOL32):
        widths[code] = VARIABLE32
    for code in (AS_LIST8, AS_MAP8):
        widths[code] = COMPOUND8
    for code in (AS_LIST32, AS_MAP32):
        widths[code] = COMPOUND32
    widths[AS_ARRAY8] = ARRAYS8
    widths[AS_ARRAY32] = ARRAYS32


_fill_widths()


cdef void begin_scan(Scan *scan, const unsigned char *end) noexcept:
    scan.end = end
    scan.left = MAX_VALUES
    scan.finding = FINE
    scan.culprit = scan.limit = 0


cdef const unsigned char *blame(Scan *scan, Finding finding, unsigned long long culprit, unsigned long long limit) noexcept:
    scan.finding, scan.culprit, scan.limit = finding, culprit, limit
    return NULL


cdef inline bint _room(Scan *scan, const unsigned char *at, unsigned long long size) noexcept:
    cdef size_t there = scan.end - at
    if size > there:
        blame(scan, CUT, size - there, 0)
        return False
    return True


cdef unsigned long long big_endian(const unsigned char *raw, size_t size) noexcept:
    cdef unsigned long long value = 0
    cdef size_t index
    for index in range(size):
        value = value << 8 | raw[index]
    return value


cdef const unsigned char *scan_value(Scan *scan, const unsigned char *at, unsigned int depth) noexcept:
    """Scan the value at ``at``, described or not; return its end, or NULL with a finding."""
    cdef unsigned char code
    cdef unsigned long long descriptor
    cdef bint is_symbol
    if not _room(scan, at, 1):
        return NULL
    code = at[0]
    at += 1
    if code == AS_DESCRIBED:
        at = scan_descriptor(scan, at, &descriptor, &is_symbol)
        if at is NULL or not _room(scan, at, 1):
            return NULL
        code = at[0]
        at += 1
        if code == AS_DESCRIBED:
            return blame(scan, TWICE_DESCRIBED, 0, 0)
    return scan_body(scan, code, at, depth)


cdef const unsigned char *scan_descriptor(Scan *scan, const unsigned char *at, unsigned long long *code, bint *is_symbol) noexcept:
    """Scan the descriptor at ``at``, behind the constructor 0x00; return its end, or NULL with a finding.

    ``code`` gets the descriptor's number, 0 for a symbol, for which ``is_symbol`` is set.
    """
    cdef unsigned char constructor
    cdef const unsigned char *body
    code[0], is_symbol[0] = 0, False
    if not _room(scan, at, 1):
        return NULL
    constructor = at[0]
    body = at + 1
    if constructor == AS_SYMBOL8 or constructor == AS_SYMBOL32:
        is_symbol[0] = True
    elif constructor != AS_SMALL_ULONG and constructor != AS_ULONG and constructor != AS_ULONG0:
        return blame(scan, WRONG_DESCRIPTOR, constructor, 0)
    at = scan_body(scan, constructor, body, 0)
    if at is not NULL and not is_symbol[0]:
        code[0] = big_endian(body, at - body)
    return at


cdef const unsigned char *scan_body(Scan *scan, unsigned char code, const unsigned char *at, unsigned int depth) noexcept:
    """Scan the bytes of a value behind its constructor ``code``; return its end, or NULL with a finding."""
    cdef unsigned char width = widths[code]
    cdef unsigned long long size
    if scan.left == 0:
        return blame(scan, TOO_MANY_VALUES, 0, MAX_VALUES)
    scan.left -= 1
    if width <= 16:
        if not _room(scan, at, width):
            return NULL
        if code == AS_CHAR and not _is_character(big_endian(at, 4)):
            return blame(scan, NOT_A_CHARACTER, big_endian(at, 4), 0)
        if code == AS_BOOLEAN and at[0] > 1:
            return blame(scan, NOT_A_BOOLEAN, at[0], 0)
        return at + width
    if width == INVALID:
        return blame(scan, UNKNOWN_CONSTRUCTOR, code, 0)
    if width == VARIABLE8 or width == COMPOUND8 or width == ARRAYS8:
        if not _room(scan, at, 1):
            return NULL
        size = at[0]
        at += 1
    else:
        if not _room(scan, at, 4):
            return NULL
        size = big_endian(at, 4)
        at += 4
    if not _room(scan, at, size):
        return NULL
    if width == VARIABLE8 or width == VARIABLE32:
        return _scan_text(scan, code, at, size)
    if depth >= MAX_DEPTH:
        return blame(scan, TOO_DEEP, 0, MAX_DEPTH)
    if width == COMPOUND8 or width == COMPOUND32:
        return _scan_compound(scan, code, at, size, 1 if width == COMPOUND8 else 4, depth + 1)
    return _scan_array(scan, at, size, 1 if width == ARRAYS8 else 4, depth + 1)


cdef inline bint _is_character(unsigned long long value) noexcept:
    return value < 0xD800 or 0xE000 <= value <= 0x10FFFF


cdef const unsigned char *_scan_text(Scan *scan, unsigned char code, const unsigned char *at, size_t size) noexcept:
    cdef size_t wrong
    if code & 0x0F == 0x01:
        wrong = _valid_utf8(at, size)
        if wrong != size:
            return blame(scan, NOT_UTF8, wrong, 0)
    elif code & 0x0F == 0x03:
        wrong = _ascii(at, size)
        if wrong != size:
            return blame(scan, NOT_ASCII, wrong, 0)
    return at + size


cdef size_t _ascii(const unsigned char *text, size_t size) noexcept:
    """Return the number of bytes at the beginning of ``text`` that are ASCII: ``size`` if all are."""
    cdef size_t at = 0
    cdef uint64_t word
    while at + 8 <= size:
        memcpy(&word, text + at, 8)
        if word & 0x8080808080808080ULL:
            break
        at += 8
    while at < size and text[at] < 0x80:
        at += 1
    return at


cdef size_t _valid_utf8(const unsigned char *text, size_t size) noexcept:
    """Return the number of bytes at the beginning of ``text`` that are valid UTF-8: ``size`` if all are.

    Overlong forms, surrogates and characters beyond Unicode are not valid.
    """
    cdef size_t at = _ascii(text, size), more, index
    cdef unsigned char first, low, high
    while at < size:
        first = text[at]
        if first < 0x80:
            at += 1 + _ascii(text + at + 1, size - at - 1)
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return at
        if more > size - at - 1 or not low <= text[at + 1] <= high:
            return at
        for index in range(2, more + 1):
            if text[at + index] & 0xC0 != 0x80:
                return at
        at += more + 1
    return at


cdef const unsigned char *_scan_compound(
    Scan *scan, unsigned char code, const unsigned char *at, size_t size, size_t width, unsigned int depth
) noexcept:
    """Scan the list or map whose count is at ``at``, with ``size`` bytes from there on; the values must fill these.

    Return the end of the value, or NULL with a finding.
    """
    cdef const unsigned char *outer_end = scan.end
    cdef unsigned long long count, index
    cdef bint is_map = code == AS_MAP8 or code == AS_MAP32
    if size < width:
        return blame(scan, WRONG_SIZE, size, width)
    count = big_endian(at, width)
    scan.end = at + size
    at += width
    # A count of values above the number of bytes is a fault, since each value takes a byte at least.
    if count > <size_t>(scan.end - at):
        return blame(scan, WRONG_COUNT, count, scan.end - at)
    if is_map and count & 1:
        return blame(scan, ODD_MAP, count, 0)
    for index in range(count):
        if is_map and not index & 1 and at < scan.end and _is_compound(at[0]):
            return blame(scan, COMPOUND_KEY, at[0], 0)
        at = scan_value(scan, at, depth)
        if at is NULL:
            return NULL
    if at != scan.end:
        return blame(scan, WRONG_SIZE, size, size - (scan.end - at))
    scan.end = outer_end
    return at


cdef inline bint _is_compound(unsigned char code) noexcept:
    return code == AS_DESCRIBED or code == AS_LIST0 or code >= 0xC0


cdef const unsigned char *_scan_array(
    Scan *scan, const unsigned char *at, size_t size, size_t width, unsigned int depth
) noexcept:
    """Scan the array whose count is at ``at``, with ``size`` bytes from there on; return its end, or NULL.

    Behind the count come one constructor and the bodies of all elements, which must fill the bytes exactly.
    """
    cdef const unsigned char *outer_end = scan.end
    cdef unsigned long long count, _index, descriptor
    cdef bint is_symbol
    cdef unsigned char code
    if size < width + 1:
        return blame(scan, WRONG_SIZE, size, width + 1)
    count = big_endian(at, width)
    scan.end = at + size
    code = at[width]
    at += width + 1
    if code == AS_DESCRIBED:
        at = scan_descriptor(scan, at, &descriptor, &is_symbol)
        if at is NULL or not _room(scan, at, 1):
            return NULL
        code = at[0]
        at += 1
        if code == AS_DESCRIBED:
            return blame(scan, TWICE_DESCRIBED, 0, 0)
    if widths[code] == INVALID:
        return blame(scan, UNKNOWN_CONSTRUCTOR, code, 0)
    # Elements without bytes, such as nulls, count against MAX_VALUES, too: a few bytes may announce billions of these.
    for _index in range(count):
        at = scan_body(scan, code, at, depth)
        if at is NULL:
            return NULL
    if at != scan.end:
        return blame(scan, WRONG_SIZE, size, size - (scan.end - at))
    scan.end = outer_end
    return at


_SENTENCES = {
    CUT: "the bytes end {0} too early",
    UNKNOWN_CONSTRUCTOR: "0x{0:02x} is not a constructor of AMQP 1.0",
    WRONG_SIZE: "the size of a compound value is {0}, its content takes {1} bytes",
    WRONG_COUNT: "a compound value has {0} values in {1} bytes",
    ODD_MAP: "a map has {0} keys and values together, expected an even number",
    COMPOUND_KEY: "a key of a map has constructor 0x{0:02x}, expected a value that is not compound",
    TOO_DEEP: "values are nested more than {1} deep",
    TOO_MANY_VALUES: "there are more than {1} values in one frame",
    NOT_UTF8: "a string is not UTF-8 from byte {0} on",
    NOT_ASCII: "a symbol is not ASCII from byte {0} on",
    NOT_A_CHARACTER: "0x{0:x} is not a character of Unicode",
    NOT_A_BOOLEAN: "0x{0:02x} is not a boolean, expected 0x00 or 0x01",
    WRONG_DESCRIPTOR: "a descriptor has constructor 0x{0:02x}, expected a ulong or a symbol",
    TWICE_DESCRIBED: "a described value is described again",
    NOT_DESCRIBED: "constructor 0x{0:02x}, expected a described list",
    UNKNOWN_TYPE: "0x{0:02x} is not the descriptor of a type that is expected here",
    SYMBOLIC_TYPE: "a type is named by a symbol, expected the number of its descriptor",
    NOT_A_LIST: "constructor 0x{0:02x}, expected a list",
    TOO_MANY_FIELDS: "{0} fields, expected at most {1}",
    MISSING_FIELD: "a mandatory field is missing or null",
    WRONG_TYPE: "constructor 0x{0:02x} does not fit the field's type",
    TOO_LARGE: "{0}, expected at most {1}",
    TOO_LONG: "{0} bytes, expected at most {1}",
}


cdef object sentence_of(const Scan *scan):
    """Return the finding of a failed scan as a text with the finding's numbers, such as "the bytes end 3 too early"."""
    return _SENTENCES[scan.finding].format(scan.culprit, scan.limit)


cdef bint is_invalid_field(Finding finding) noexcept:
    """Say whether the error condition for a finding is amqp:invalid-field: a field's value is missing or too large.

    The condition for all other findings is amqp:decode-error.
    """
    return finding == MISSING_FIELD or finding == TOO_LARGE or finding == TOO_LONG


# Functions that tests and decoders call from Python.
def find_fault(const unsigned char[:] encoded not None):
    """Return what is wrong with ``encoded``, which has to be one AMQP value, as a sentence; None if nothing is."""
    cdef Scan scan
    cdef const unsigned char *first = &encoded[0] if encoded.shape[0] else NULL
    cdef const unsigned char *at
    if first is NULL:
        return "there is no value"
    begin_scan(&scan, first + encoded.shape[0])
    at = scan_value(&scan, first, 0)
    if at is NULL:
        return sentence_of(&scan)
    if at != scan.end:
        return f"{scan.end - at} bytes follow the value"
    return None

"""Reads the head of a message: the header, and the fields of the properties that routing and storing depend on.

Spec: AMQP 1.0 [3.2.1] header, [3.2.4] properties, [1.6] encodings. Bodies are never read. Times become seconds.

The bytes come from a stranger. Always: ``offset <= size``, and no byte is read before `_take` has confirmed the byte.
A field of another type than the spec's, or beyond its range, counts as absent.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memset

from wire.errors import AmqpError

cdef enum:
    DESCRIBED = 0x00
    SMALL_ULONG = 0x53
    ULONG = 0x80
    TIMESTAMP = 0x83
    UUID = 0x98
    LIST0 = 0x45
    LIST8 = 0xC0
    LIST32 = 0xD0

cdef enum:
    DEFAULT_PRIORITY = 4


class Incomplete(Exception):
    """The bytes end within the head of the message: the scan needs more bytes of the delivery."""


# Reading [1.2]
cdef bint _blame(Reader *reader, Finding finding, unsigned long long culprit=0, unsigned long long limit=0) noexcept:
    reader.head.finding, reader.head.culprit, reader.head.limit = finding, culprit, limit
    return False


cdef inline bint _take(Reader *reader, unsigned long long size) noexcept:
    """Step over the next ``size`` bytes; if fewer are left, set the finding CUT and return False."""
    if size > reader.size - reader.offset:
        return _blame(reader, CUT)
    reader.offset += size
    return True


cdef inline unsigned long long _big_endian(const unsigned char *raw, size_t size) noexcept:
    cdef unsigned long long value = 0
    cdef size_t index
    for index in range(size):
        value = value << 8 | raw[index]
    return value


cdef inline bint _uint(Reader *reader, size_t width, unsigned long long *value) noexcept:
    if not _take(reader, width):
        return False
    value[0] = _big_endian(reader.message + reader.offset - width, width)
    return True


cdef inline bint _code(Reader *reader, unsigned char *code) noexcept:
    if not _take(reader, 1):
        return False
    code[0] = reader.message[reader.offset - 1]
    return True


cdef inline bint _extent(Reader *reader, unsigned char code, unsigned long long *size) noexcept:
    """Put the size in bytes of the value with constructor ``code`` into ``size``; return False with a finding.

    The upper half of the constructor gives the size, or says how the size is encoded.
    """
    cdef unsigned char kind = code >> 4
    if kind < 0x4:
        return _blame(reader, UNKNOWN_TYPE, code)
    if kind < 0xA:
        size[0] = 0 if kind == 0x4 else 1 << (kind - 5)
        return True
    return _uint(reader, 4 if kind & 1 else 1, size)


cdef bint skip_values(Reader *reader, size_t count) noexcept:
    """Step over the next ``count`` values of any type; return False, with a finding, for bytes that are no values.

    The function does not recur, as described values may nest without end: a described value counts as two values, its
    descriptor and its value.
    """
    cdef unsigned char code
    cdef unsigned long long size
    while count:
        if not _code(reader, &code):
            return False
        if code == DESCRIBED:
            count += 1
            continue
        count -= 1
        if not _extent(reader, code, &size) or not _take(reader, size):
            return False
    return True


cdef bint is_text(const Field *field) noexcept:
    """Say whether the value of ``field`` is a string or a symbol."""
    return field.code == 0xA1 or field.code == 0xB1 or field.code == 0xA3 or field.code == 0xB3


cdef bint _is_utf8(const unsigned char *text, size_t size) noexcept:
    """Say whether ``text`` is well-formed as in RFC 3629: no surrogates, no overlong forms. [1.6.20]"""
    cdef size_t offset = 0, more
    cdef unsigned char lead, low, high
    while offset < size:
        lead = text[offset]
        offset += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if more > size - offset:
            return False
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        while more:
            if not low <= text[offset] <= high:
                return False
            low, high = 0x80, 0xBF
            offset += 1
            more -= 1
    return True


cdef inline bint _field(Reader *reader, Field *field) noexcept:
    """Find the next item of a list, and put its constructor and place into ``field``; return False with a finding.

    A described value is stepped over, and counts as absent. Text that is not UTF-8 is a fault.
    """
    cdef unsigned long long size
    cdef unsigned char code
    field.code = 0
    if not _code(reader, &code):
        return False
    if code == DESCRIBED:
        return skip_values(reader, 2)
    if not _extent(reader, code, &size) or not _take(reader, size):
        return False
    field.code, field.start, field.size_bytes = code, reader.offset - size, size
    if is_text(field) and not _is_utf8(reader.message + field.start, size):
        return _blame(reader, NOT_UTF8)
    return True


# Sections [3.2]
cdef unsigned long long _named(const unsigned char *name, size_t size) noexcept:
    """Return the code of the section that the symbol ``name`` stands for; 0 for a section outside of the head.

    AMQP allows a symbol in place of the number as the descriptor of a section.
    """
    if size == 16 and memcmp(name, <const char *>b"amqp:header:list", size) == 0:
        return HEADER
    if size == 29 and memcmp(name, <const char *>b"amqp:delivery-annotations:map", size) == 0:
        return DELIVERY_ANNOTATIONS
    if size == 28 and memcmp(name, <const char *>b"amqp:message-annotations:map", size) == 0:
        return MESSAGE_ANNOTATIONS
    if size == 20 and memcmp(name, <const char *>b"amqp:properties:list", size) == 0:
        return PROPERTIES
    return 0


cdef bint read_descriptor(Reader *reader, unsigned long long *section) noexcept:
    cdef unsigned char code
    cdef unsigned long long size
    if not _code(reader, &code):
        return False
    if code != DESCRIBED:
        return _blame(reader, NO_SECTION, reader.offset - 1)
    if not _code(reader, &code):
        return False
    if code == SMALL_ULONG or code == ULONG:
        return _uint(reader, 1 if code == SMALL_ULONG else 8, section)
    if code != 0xA3 and code != 0xB3:
        return _blame(reader, WRONG_DESCRIPTOR, code)
    if not _extent(reader, code, &size) or not _take(reader, size):
        return False
    section[0] = _named(reader.message + reader.offset - size, size)
    return True


cdef bint _list(Reader *reader, unsigned long long section) noexcept:
    """Read the list that is the value of ``section``, header or properties, into the reader's head.

    Return False, with a finding, for bytes that are no such list.
    """
    cdef unsigned char code
    cdef unsigned long long size, count, index
    cdef size_t width, end
    cdef Field field
    if not _code(reader, &code):
        return False
    if code == LIST0:
        return True
    if code != LIST8 and code != LIST32:
        return _blame(reader, NO_LIST, code)
    width = 1 if code == LIST8 else 4
    if not _uint(reader, width, &size) or not _take(reader, size):
        return False
    end = reader.offset
    reader.offset -= size
    if not _uint(reader, width, &count):
        return False
    if count > size:
        return _blame(reader, TOO_MANY_ITEMS, count, size)
    for index in range(count):
        if not _field(reader, &field):
            return False
        if section == HEADER:
            _note_header(reader, index, &field)
        else:
            _note_properties(reader, index, &field)
    return reader.offset == end or _blame(reader, WRONG_SIZE)


cdef inline bint _is_true(const unsigned char *message, const Field *field, bint otherwise) noexcept:
    if field.code == 0x56:
        return message[field.start] != 0
    return True if field.code == 0x41 else False if field.code == 0x42 else otherwise


cdef inline bint _is_unsigned(const Field *field) noexcept:
    return (
        field.code == 0x43 or field.code == 0x44 or field.code == 0x50 or field.code == 0x52 or field.code == 0x53
        or field.code == 0x60 or field.code == 0x70 or field.code == 0x80
    )


cdef int _note_header(Reader *reader, unsigned long long index, const Field *field) noexcept:
    """Store the header's field number ``index`` in the reader's head, unless it has a wrong type or range. [3.2.1]

    The fields are durable (0), priority (1), ttl (2), first-acquirer (3) and delivery-count (4).
    """
    cdef Head *head = reader.head
    cdef unsigned long long value
    if index == 0:
        head.is_durable = _is_true(reader.message, field, head.is_durable)
    elif index == 3:
        head.is_first_acquirer = _is_true(reader.message, field, head.is_first_acquirer)
    elif _is_unsigned(field):
        value = _big_endian(reader.message + field.start, field.size_bytes)
        if index == 1 and value <= 0xFF:
            head.priority = value
        elif index == 2 and value >> 32 == 0:
            head.has_ttl, head.ttl_ms, head.ttl = True, value, field[0]
        elif index == 4 and value >> 32 == 0:
            head.delivery_count = value
    return 0


cdef int _note_properties(Reader *reader, unsigned long long index, const Field *field) noexcept:
    """Store the properties' field number ``index`` in the reader's head if nodes use the field. [3.2.4]

    Nodes use message-id (0), to (2), subject (3), reply-to (4), absolute-expiry-time (8) and group-id (10).
    """
    cdef Head *head = reader.head
    if index == 0:
        head.message_id = field[0]
    elif index == 8 and field.code == TIMESTAMP:
        head.has_expiry = True
        head.expires_at_ms = <long long>_big_endian(reader.message + field.start, field.size_bytes)
    elif not is_text(field):
        return 0
    elif index == 2:
        head.to = field[0]
    elif index == 3:
        head.subject = field[0]
    elif index == 4:
        head.reply_to = field[0]
    elif index == 10:
        head.group_id = field[0]
    return 0


cdef bint _section(Reader *reader) noexcept:
    """Read one section into the reader's head; return True if another section of the message's head may follow.

    False at the end of the head, and for a fault.
    """
    cdef unsigned long long section
    cdef size_t start = reader.offset
    if not read_descriptor(reader, &section):
        return False
    if section == HEADER:
        if not _list(reader, section):
            return False
        reader.head.header_end = reader.head.annotations_start = reader.head.annotations_end = reader.offset
        return True
    if section == PROPERTIES:
        _list(reader, section)
        return False
    if (section != DELIVERY_ANNOTATIONS and section != MESSAGE_ANNOTATIONS) or not skip_values(reader, 1):
        return False
    reader.head.annotations_start = start if section == MESSAGE_ANNOTATIONS else reader.offset
    reader.head.annotations_end = reader.offset
    return True


cdef Reader reader_of(const unsigned char *message, size_t size, Head *head) noexcept:
    cdef Reader reader
    memset(head, 0, sizeof(Head))
    head.priority = DEFAULT_PRIORITY
    reader.message, reader.size, reader.offset, reader.head = message, size, 0, head
    return reader


cdef Finding scan_head(const unsigned char *message, size_t size, Head *head) noexcept:
    """Read the head of an encoded message into ``head``; return WHOLE, CUT or the fault.

    CUT means that the bytes end within a section of the head. The scan makes no Python object, and reads nothing
    behind the properties.
    """
    cdef Reader reader = reader_of(message, size, head)
    while reader.offset < size and _section(&reader):
        pass
    return head.finding


cdef bint lower_ttl(unsigned char *message, size_t size, unsigned long long held_ms, long long wall_ms) noexcept:
    """Reduce the ttl in a message's header by ``held_ms``, the time that a node held the message, in place. [3.2.1]

    Return False, and change nothing, if the ttl is used up, or if the absolute-expiry-time is past at ``wall_ms``; else
    True. A ttl of 0 stands for no ttl.
    """
    cdef Head head
    scan_head(message, size, &head)
    if head.has_expiry and head.expires_at_ms <= wall_ms:
        return False
    if not head.has_ttl or not head.ttl_ms:
        return True
    if head.ttl_ms <= held_ms:
        return False
    _write_ttl(message, &head, head.ttl_ms - held_ms)
    return True


cdef bint limit_ttl(unsigned char *message, size_t size, unsigned long long left_ms) noexcept:
    """Lower the ttl in a message's header to ``left_ms``, in place, if the ttl is longer; return whether it is."""
    cdef Head head
    scan_head(message, size, &head)
    if not head.has_ttl or head.ttl_ms <= left_ms:
        return False
    _write_ttl(message, &head, left_ms)
    return True


cdef int _write_ttl(unsigned char *message, const Head *head, unsigned long long ttl_ms) noexcept:
    """Write ``ttl_ms``, which is smaller than the message's ttl, over the bytes of that ttl, in the same width."""
    cdef size_t index
    for index in range(head.ttl.size_bytes):
        message[head.ttl.start + head.ttl.size_bytes - 1 - index] = <unsigned char>(ttl_ms >> (8 * index) & 0xFF)
    return 0


cdef int priority_of(const unsigned char *message, size_t size) noexcept:
    """Return the priority in the message's header; 4, the spec's default, without a header or for one that is cut."""
    cdef Head head
    cdef Reader reader = reader_of(message, size, &head)
    cdef unsigned long long section
    if read_descriptor(&reader, &section) and section == HEADER and _list(&reader, HEADER):
        return head.priority
    return DEFAULT_PRIORITY


cdef object fault_in(const Head *head):
    """Return the exception for a head that is not WHOLE: Incomplete if the bytes are cut, else an AmqpError."""
    if head.finding == CUT:
        return Incomplete()
    return AmqpError("amqp:decode-error", f"not an AMQP message: {_sentence(head)}")


cdef str _sentence(const Head *head):
    if head.finding == NO_SECTION:
        return f"no section begins at byte {head.culprit}"
    if head.finding == WRONG_DESCRIPTOR:
        return f"descriptor of type 0x{head.culprit:02x}"
    if head.finding == NO_LIST:
        return f"expected a list, got type 0x{head.culprit:02x}"
    if head.finding == TOO_MANY_ITEMS:
        return f"a list of {head.culprit} items in {head.limit} bytes"
    if head.finding == WRONG_SIZE:
        return "a list whose size does not fit its items"
    if head.finding == NOT_UTF8:
        return "a string that is not UTF-8"
    return f"unknown type 0x{head.culprit:02x}"


# For Python
cdef class MessageHead:
    """The fields of a message's header and properties that nodes need; absent fields have the spec's defaults.

    ``header_end`` is the offset of the first byte behind the header section; 0 without a header. The section of message
    annotations lies from ``annotations_start`` to ``annotations_end``; equal offsets are the place for a new section.
    """

    cdef readonly bint durable
    cdef readonly int priority
    cdef readonly object ttl_s
    cdef readonly bint first_acquirer
    cdef readonly unsigned int delivery_count
    cdef readonly size_t header_end
    cdef readonly size_t annotations_start
    cdef readonly size_t annotations_end
    cdef readonly object message_id
    cdef readonly object to
    cdef readonly object subject
    cdef readonly object reply_to
    cdef readonly object group_id

    def __init__(
        self, *, durable=False, priority=DEFAULT_PRIORITY, ttl_s=None, first_acquirer=False, delivery_count=0,
        header_end=0, message_id=None, to=None, subject=None, reply_to=None, group_id=None,
    ):  # fmt: skip
        self.durable, self.priority, self.ttl_s = durable, priority, ttl_s
        self.first_acquirer, self.delivery_count, self.header_end = first_acquirer, delivery_count, header_end
        self.message_id, self.to, self.subject = message_id, to, subject
        self.reply_to, self.group_id = reply_to, group_id


def scan(message):
    """Return the head of an encoded message.

    Raises Incomplete if ``message`` is cut within its head, AmqpError `amqp:decode-error` for a malformed head.
    """
    cdef bytes whole = message if isinstance(message, bytes) else bytes(memoryview(message))
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(whole)
    cdef Head head
    if scan_head(raw, PyBytes_GET_SIZE(whole), &head) != WHOLE:
        raise fault_in(&head)
    return _message_head(raw, &head)


cdef MessageHead _message_head(const unsigned char *raw, const Head *head):
    cdef MessageHead found = MessageHead.__new__(MessageHead)
    found.durable, found.priority = head.is_durable, head.priority
    found.ttl_s = head.ttl_ms / 1000.0 if head.has_ttl else None
    found.first_acquirer, found.delivery_count = head.is_first_acquirer, head.delivery_count
    found.header_end = head.header_end
    found.annotations_start, found.annotations_end = head.annotations_start, head.annotations_end
    found.message_id = _scalar(raw, &head.message_id)
    found.to, found.subject = _scalar(raw, &head.to), _scalar(raw, &head.subject)
    found.reply_to, found.group_id = _scalar(raw, &head.reply_to), _scalar(raw, &head.group_id)
    return found


cdef object _scalar(const unsigned char *raw, const Field *field):
    """Return the value of ``field`` in ``raw`` as a Python value.

    None for a field without a value, or with a value of a type that none of the fields in a head may have.
    """
    cdef const char *start = <const char *>raw + field.start
    if field.code == 0:
        return None
    if is_text(field):
        return PyUnicode_DecodeUTF8(start, field.size_bytes, NULL)
    if field.code == UUID or field.code == 0xA0 or field.code == 0xB0:
        return PyBytes_FromStringAndSize(start, field.size_bytes)
    if _is_unsigned(field) or field.code == TIMESTAMP:
        return _big_endian(raw + field.start, field.size_bytes)
    if field.code == 0x41 or field.code == 0x42 or field.code == 0x56:
        return bool(_is_true(raw, field, False))
    return None

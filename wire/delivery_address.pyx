"""Writes the address of a delivery into an encoded message: the delivery annotation x-opt-to, and the field `to`.

Spec: AMQP 1.0 [3.2] order of sections, [3.2.2] delivery annotations, [3.2.4] properties, [3.2.10] keys of annotations.
All other bytes of the message stay as they are. Addresses are UTF-8.

The message comes from a stranger, but `wire.sections.scan_head` has found it WHOLE.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from wire.sections cimport (
    DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, PROPERTIES, WHOLE, Head, Reader, read_descriptor, reader_of,
    scan_head, skip_values
)

ADDRESS_ANNOTATION = "x-opt-to"
"""The delivery annotation that tells a subscriber with wildcards the address to which a message was published."""

cdef enum:
    NULL_VALUE = 0x40
    LIST0 = 0x45
    STRING8 = 0xA1
    STRING32 = 0xB1
    SYMBOL8 = 0xA3
    SYMBOL32 = 0xB3
    LIST8 = 0xC0
    MAP8 = 0xC1
    LIST32 = 0xD0
    MAP32 = 0xD1
    # The place of `to` in the list of properties.
    TO = 2
    NAME_BYTES = 8

cdef const char *_NAME = "x-opt-to"
cdef bytes _KEY = b"\xa3\x08x-opt-to"


# Delivery annotations
cdef Span delivery_annotations_of(const unsigned char *message, size_t size) noexcept:
    """Return the place of the delivery annotations; without any, an empty place where a new section belongs."""
    cdef Head head
    cdef Reader reader = reader_of(message, size, &head)
    cdef unsigned long long section
    cdef Span found
    cdef size_t start
    found.start = found.end = 0
    while reader.offset < size:
        start = reader.offset
        if not read_descriptor(&reader, &section) or section < HEADER or section > MESSAGE_ANNOTATIONS:
            break
        if not skip_values(&reader, 1):
            break
        if section == DELIVERY_ANNOTATIONS:
            found.start, found.end = start, reader.offset
        elif section == HEADER and found.start == found.end:
            found.start = found.end = reader.offset
    return found


cdef bytes addressed_section(const unsigned char *section, size_t size, bytes address):
    """Return a section of delivery annotations with those of ``section``, which may be empty, and x-opt-to last.

    An x-opt-to that is there is left out, and so are all annotations if they are not a map.
    """
    cdef unsigned long long count = 0
    cdef bytes others = _others(section, size, &count) if size else b""
    return b"\x00\x53\x71" + _compound(MAP8, MAP32, count + 2, others + _KEY + _string(address))


def with_delivery_address(bytes message not None, bytes address not None):
    """Return ``message`` with the annotation x-opt-to, added or replaced."""
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
    cdef Span old = delivery_annotations_of(raw, PyBytes_GET_SIZE(message))
    section = addressed_section(raw + old.start, old.end - old.start, address)
    return message[:old.start] + section + message[old.end:]


cpdef bytes addressed_start(bytes start, bytes address, bint fills_to):
    """Return the first bytes of a message, or the whole message, with x-opt-to; with ``fills_to`` also with `to`.

    ``start`` is of a stranger, and nobody has read it. Return None, for the message to stay as it is, if its delivery
    annotations do not end within ``start``, or if ``start`` is no message. `to` stays if the properties do not end there.
    """
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(start)
    cdef Head head
    if not _ends_delivery_annotations(raw, PyBytes_GET_SIZE(start)):
        return None
    if fills_to and scan_head(raw, PyBytes_GET_SIZE(start), &head) == WHOLE:
        start = with_to(start, address)
    return with_delivery_address(start, address)


cdef bint _ends_delivery_annotations(const unsigned char *start, size_t size) noexcept:
    """Say whether a section that comes after the delivery annotations begins within the first bytes of a message."""
    cdef Head head
    cdef Reader reader = reader_of(start, size, &head)
    cdef unsigned long long section
    while read_descriptor(&reader, &section):
        if section != HEADER and section != DELIVERY_ANNOTATIONS:
            return True
        if not skip_values(&reader, 1):
            return False
    return False


cdef bytes _others(const unsigned char *section, size_t size, unsigned long long *count):
    """Return the encoded pairs of a section but for x-opt-to, and set ``count`` to the number of keys and values."""
    cdef Head head
    cdef Reader reader = reader_of(section, size, &head)
    cdef unsigned long long descriptor, left
    cdef size_t start, key_end
    cdef list kept = []
    if not read_descriptor(&reader, &descriptor) or not _enter(&reader, MAP8, MAP32, &left):
        return b""
    while left >= 2:
        start = reader.offset
        if not skip_values(&reader, 1):
            return b""
        key_end = reader.offset
        if not skip_values(&reader, 1):
            return b""
        if not _is_name(section + start, key_end - start):
            kept.append((<const char *>section)[start:reader.offset])
        left -= 2
    if left or reader.offset != size:
        return b""
    count[0] = 2 * len(kept)
    return b"".join(kept)


cdef bint _is_name(const unsigned char *key, size_t size) noexcept:
    """Say whether a key is x-opt-to, as a symbol or, as some clients encode keys, as a string."""
    cdef size_t start
    if size == 2 + NAME_BYTES and (key[0] == SYMBOL8 or key[0] == STRING8):
        start = 2
    elif size == 5 + NAME_BYTES and (key[0] == SYMBOL32 or key[0] == STRING32):
        start = 5
    else:
        return False
    return memcmp(key + start, _NAME, NAME_BYTES) == 0


# Properties
cpdef bytes with_to(bytes message, bytes address):
    """Return ``message`` with ``address`` as `to`, unless `to` says something already. [3.2.4]"""
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
    cdef size_t size = PyBytes_GET_SIZE(message), start = 0, end = 0
    cdef Head head
    cdef Reader reader = reader_of(raw, size, &head)
    cdef unsigned long long section = 0
    cdef bytes properties
    while reader.offset < size:
        start = end = reader.offset
        if not read_descriptor(&reader, &section):
            return message
        if section == PROPERTIES or section < HEADER or section > PROPERTIES:
            break
        if not skip_values(&reader, 1):
            return message
        start = end = reader.offset
    if section != PROPERTIES:
        properties = _compound(LIST8, LIST32, TO + 1, b"\x40\x40" + _string(address))
    else:
        properties = _with_item(&reader, address)
        end = reader.offset
    if properties is None:
        return message
    return message[:start] + b"\x00\x53\x73" + properties + message[end:]


cdef bytes _with_item(Reader *reader, bytes address):
    """Return the list of properties, at which the reader stands, with ``address`` as `to`; None if it has a `to`.

    The reader then stands behind the list.
    """
    cdef unsigned long long count, number
    cdef size_t first, start, end
    if not _enter(reader, LIST8, LIST32, &count):
        return None
    first = start = end = reader.offset
    for number in range(count):
        start = reader.offset if number <= TO else start
        if not skip_values(reader, 1):
            return None
        end = reader.offset if number <= TO else end
    if count > TO and not _is_empty(reader.message + start):
        return None
    if count <= TO:
        start = end
    before = (<const char *>reader.message)[first:start] + b"\x40" * (TO - <Py_ssize_t>min(count, <unsigned long long>TO))
    content = before + _string(address) + (<const char *>reader.message)[end:reader.offset]
    return _compound(LIST8, LIST32, max(count, <unsigned long long>(TO + 1)), content)


cdef bint _is_empty(const unsigned char *value) noexcept:
    """Say whether a value is null or an empty string."""
    if value[0] == STRING8:
        return value[1] == 0
    if value[0] == STRING32:
        return value[1] == 0 and value[2] == 0 and value[3] == 0 and value[4] == 0
    return value[0] == NULL_VALUE


# Encoding [1.6]
cdef bint _enter(Reader *reader, unsigned char small, unsigned char large, unsigned long long *count) noexcept:
    """Step behind the constructor, size and count of a map or list; return False if the value is something else."""
    cdef unsigned char code
    cdef size_t width, index
    if reader.offset >= reader.size:
        return False
    code = reader.message[reader.offset]
    count[0] = 0
    if code == LIST0 and small == LIST8:
        reader.offset += 1
        return True
    if code != small and code != large:
        return False
    width = 1 if code == small else 4
    if reader.size - reader.offset < 1 + 2 * width:
        return False
    for index in range(width):
        count[0] = count[0] << 8 | reader.message[reader.offset + 1 + width + index]
    reader.offset += 1 + 2 * width
    return True


cdef bytes _compound(unsigned char small, unsigned char large, unsigned long long count, bytes content):
    cdef size_t size = PyBytes_GET_SIZE(content)
    if size < 0xFF and count <= 0xFF:
        return bytes((small, size + 1, count)) + content
    return bytes((large,)) + (size + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + content


cdef bytes _string(bytes text):
    cdef size_t size = PyBytes_GET_SIZE(text)
    if size <= 0xFF:
        return bytes((STRING8, size)) + text
    return bytes((STRING32,)) + size.to_bytes(4, "big") + text

"""Addressed bodies: messages with the address to which they were published, for subscriptions with wildcards.

A message that goes to a subscription with wildcards, among others, is kept with the delivery annotation x-opt-to. The
lead before the message, as FORMAT.md shows, has the bytes to get back the message as it was published:

    1, lead, start, size    13 bytes: the number 1, and the lead's size, start and size of the message's section of
                            delivery annotations, four bytes each, little-endian
    annotations             delivery annotations as published; empty if there were none
    message                 with the section of delivery annotations that has x-opt-to
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from wire.delivery_address cimport Span, addressed_section, delivery_annotations_of

from wire.codec.values import Symbol, decode
from wire.delivery_address import ADDRESS_ANNOTATION

cdef enum:
    NUMBERS_BYTES = 13


cdef struct Lead:
    size_t size
    size_t start
    size_t section_size


cpdef bytes addressed(bytes message, bytes address):
    """Return the addressed body of a message whose head is whole; ``address`` is UTF-8."""
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
    cdef size_t size = PyBytes_GET_SIZE(message)
    cdef Span old = delivery_annotations_of(raw, size)
    cdef bytes section = addressed_section(raw + old.start, old.end - old.start, address)
    cdef unsigned char numbers[NUMBERS_BYTES]
    numbers[0] = ADDRESSED
    _put(numbers + 1, NUMBERS_BYTES + old.end - old.start)
    _put(numbers + 5, old.start)
    _put(numbers + 9, PyBytes_GET_SIZE(section))
    return b"".join((
        (<char *>numbers)[:NUMBERS_BYTES], message[old.start:old.end], message[:old.start], section, message[old.end:]
    ))


cpdef Py_ssize_t lead_bytes(bytes body) noexcept:
    """Return the size of the lead of ``body``, the first bytes of a stored body: PLAIN without one, or CUT_LEAD.

    The message with x-opt-to begins behind the lead.
    """
    cdef Lead lead
    cdef size_t size = PyBytes_GET_SIZE(body)
    if size < NUMBERS_BYTES or PyBytes_AS_STRING(body)[0] != ADDRESSED:
        return PLAIN
    lead = _lead_of(body)
    if lead.size < NUMBERS_BYTES:
        return PLAIN
    return CUT_LEAD if size < lead.size + lead.start + lead.section_size else <Py_ssize_t>lead.size


cpdef bytes as_published(bytes body):
    """Return the message of an addressed body, or the first bytes of the message, without x-opt-to of the broker.

    The lead must not be cut. Any other body is returned unchanged.
    """
    cdef Lead lead
    cdef size_t section
    if lead_bytes(body) <= PLAIN:
        return body
    lead = _lead_of(body)
    section = lead.size + lead.start
    return body[lead.size:section] + body[NUMBERS_BYTES:lead.size] + body[section + lead.section_size:]


def as_delivered(bytes body not None):
    """Return the message of a whole body as a subscriber with wildcards gets it: with x-opt-to, if it is addressed."""
    return body[max(lead_bytes(body), PLAIN):]


def published_to(bytes body not None):
    """Return the address in an addressed body, of which the first bytes are enough; None for any other body."""
    cdef Lead lead
    cdef size_t section
    if lead_bytes(body) <= PLAIN:
        return None
    lead = _lead_of(body)
    section = lead.size + lead.start
    return decode(body[section:section + lead.section_size]).value[Symbol(ADDRESS_ANNOTATION)]


cdef Lead _lead_of(bytes body) noexcept:
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(body)
    cdef Lead lead
    lead.size, lead.start, lead.section_size = _get(raw + 1), _get(raw + 5), _get(raw + 9)
    return lead


cdef void _put(unsigned char *at, size_t number) noexcept:
    cdef int place
    for place in range(4):
        at[place] = <unsigned char>(number >> (8 * place) & 0xFF)


cdef size_t _get(const unsigned char *at) noexcept:
    return <size_t>at[0] | <size_t>at[1] << 8 | <size_t>at[2] << 16 | <size_t>at[3] << 24

"""Delivery-tags between two routers, which also say how many producers send over the circuit.

A tag is the delivery's running number in as few bytes as possible. Unless the number of producers is 1, a 0 byte and
the number of producers come first, since AMQP has no field for this number. A delivery for 0 producers is a barrier
(`router.forwarding.order`). Decision 0020.
"""

from wire.proton cimport pn, pn_bytes_t


cdef int write_tag(unsigned char *room, unsigned long long number, int producers) noexcept:
    """Write a delivery-tag of ``number`` and ``producers`` to the end of ``room``; return the length of the tag.

    ``room`` has TAG_BYTES bytes.
    """
    cdef int size = 0
    while number:
        size += 1
        room[TAG_BYTES - size] = number & 0xFF
        number >>= 8
    if producers != 1:
        room[TAG_BYTES - size - 1], room[TAG_BYTES - size - 2] = producers, 0
        size += 2
    return size


cdef int producers_of(pn_delivery_t *delivery) noexcept:
    cdef pn_bytes_t tag = pn.delivery_tag(delivery)
    return <unsigned char>tag.start[1] if tag.size > 2 and tag.start[0] == 0 else 1


cdef bint is_barrier(pn_delivery_t *delivery) noexcept:
    return delivery is not NULL and producers_of(delivery) == 0

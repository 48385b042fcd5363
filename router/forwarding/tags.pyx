"""What do delivery-tags say between two routers?

A number, as short as it goes. On a circuit that stands for several producers a 0 byte and how many comes before it: AMQP
has no word for it. With none it is nobody's delivery: a barrier (`router.forwarding.order`). Decision 0020.
"""

from wire.proton cimport pn, pn_bytes_t


cdef int write_tag(unsigned char *room, unsigned long long number, int producers) noexcept:
    """At the end of ``room``, TAG_BYTES long; how many bytes."""
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

cdef struct PlainTransfer:
    unsigned int handle
    # The transfer has a delivery-id and a delivery-tag, as the first transfer of a delivery must have.
    bint is_first
    # Further transfers of the delivery follow.
    bint has_more


cdef enum:
    # Bytes in front of a performative's fields: described, its code, the constructor of a short list, size and count.
    PLAIN_HEAD_BYTES = 6
    # The first four of these bytes, which are constant, as one number, for each of the two performatives.
    PLAIN_TRANSFER = 0x005314C0
    PLAIN_DISPOSITION = 0x005315C0


cdef bint is_plain_transfer(const unsigned char *at, const unsigned char *end, PlainTransfer *transfer) noexcept
cdef bint is_plain_disposition(const unsigned char *at, const unsigned char *end) noexcept


cdef inline unsigned int four_bytes(const unsigned char *at) noexcept:
    return <unsigned int>at[0] << 24 | <unsigned int>at[1] << 16 | <unsigned int>at[2] << 8 | at[3]

"""Quick check of transfers and dispositions of the common form, byte by byte. [2.7.5], [2.7.6]

Both come once for each message, and nearly all look alike: a short list of small numbers and constants. The checks
here accept only frames that `wire.codec.composites` accepts, too, and read no byte behind the end of the list. For a
frame of another form, which may still be good, they return False, and the gate's full scan decides.
"""

cdef enum:
    NULL_VALUE = 0x40
    TRUE_VALUE = 0x41
    FALSE_VALUE = 0x42
    UINT0 = 0x43
    SMALL_UINT = 0x52
    UINT = 0x70
    BINARY8 = 0xA0
    MOST_TAG_BYTES = 32
    # Largest difference of two delivery-ids, last - first modulo 2^32, at which last is not before first. [2.8.10]
    MOST_SERIAL = 0x7FFFFFFF
    # Number of bytes of the head and the first four fields of a disposition whose delivery-ids take four bytes each.
    NUMBERED_BYTES = 18

cdef enum:
    # Positions of fields in the list of a transfer, counted from 0, and the number of its fields.
    SETTLED = 4
    MORE = 5
    RCV_SETTLE_MODE = 6
    STATE = 7
    ABORTED = 9
    TRANSFER_FIELDS = 11

cdef enum:
    # First four bytes of an encoded outcome as one number: first of an outcome that is an empty list, then of one that
    # is a short list.
    PLAIN_OUTCOME = 0x00532445
    LISTED_OUTCOME = 0x005324C0


cdef inline const unsigned char *_after_uint(
    const unsigned char *at, const unsigned char *goal, unsigned int *value
) noexcept:
    """Return the place behind the uint at ``at``, and put the number into ``value``.

    NULL if no whole uint is there before ``goal``.
    """
    if at >= goal:
        return NULL
    if at[0] == UINT:
        if goal - at < 5:
            return NULL
        value[0] = four_bytes(at + 1)
        return at + 5
    if at[0] == SMALL_UINT:
        if goal - at < 2:
            return NULL
        value[0] = at[1]
        return at + 2
    value[0] = 0
    return at + 1 if at[0] == UINT0 else NULL


cdef inline const unsigned char *_after_uint_or_null(
    const unsigned char *at, const unsigned char *goal, unsigned int *value, bint *has_value
) noexcept:
    """Return the place behind the uint or null at ``at``; NULL if neither is there, whole, before ``goal``.

    ``has_value`` says which; only a uint changes ``value``.
    """
    has_value[0] = at >= goal or at[0] != NULL_VALUE
    return _after_uint(at, goal, value) if has_value[0] else at + 1


cdef inline bint _is_flag(unsigned char code) noexcept:
    """Say whether the constructor ``code`` is null, true or false."""
    return NULL_VALUE <= code <= FALSE_VALUE


cdef bint is_plain_transfer(const unsigned char *at, const unsigned char *end, PlainTransfer *transfer) noexcept:
    """Say whether the transfer at ``at`` has the common form, and if so, put what the gate needs into ``transfer``.

    The bytes at ``at``, PLAIN_HEAD_BYTES at least, begin with PLAIN_TRANSFER; the payload follows the list of fields.
    """
    cdef const unsigned char *goal = at + PLAIN_HEAD_BYTES - 1 + at[4]
    cdef unsigned int count = at[5], place
    cdef unsigned int ignored, format = 0
    cdef bint has_id = False, has_tag = False, has_format = False
    if goal > end or not 1 <= count <= TRANSFER_FIELDS:
        return False
    transfer.has_more = False
    at = _after_uint(at + PLAIN_HEAD_BYTES, goal, &transfer.handle)
    if at is NULL:
        return False
    if count > 1:
        at = _after_uint_or_null(at, goal, &ignored, &has_id)
        if at is NULL:
            return False
    if count > 2:
        if goal - at >= 2 and at[0] == BINARY8 and at[1] <= MOST_TAG_BYTES:
            at += 2 + at[1]
            has_tag = True
        elif at < goal and at[0] == NULL_VALUE:
            at += 1
        else:
            return False
    if count > 3:
        at = _after_uint_or_null(at, goal, &format, &has_format)
        if at is NULL or format != 0:
            return False
    transfer.is_first = has_id and has_tag
    for place in range(SETTLED, count):
        if at >= goal or not _is_flag(at[0]):
            return False
        if at[0] != NULL_VALUE and (place == RCV_SETTLE_MODE or place == STATE):
            return False
        if place == MORE:
            transfer.has_more = at[0] == TRUE_VALUE
        elif place == ABORTED and at[0] == TRUE_VALUE:
            transfer.has_more = False
        at += 1
    return at == goal


cdef bint is_plain_disposition(const unsigned char *at, const unsigned char *end) noexcept:
    """Say whether the disposition at ``at`` has the common form, with no state or an outcome without fields.

    The bytes at ``at``, PLAIN_HEAD_BYTES at least, begin with PLAIN_DISPOSITION.
    """
    cdef unsigned int count = at[5], first = 0, last = 0
    cdef bint has_last = False
    cdef size_t size = end - at
    if at[4] != size - (PLAIN_HEAD_BYTES - 1) or not 2 <= count <= 6:
        return False
    if size >= NUMBERED_BYTES and count > 3 and at[7] == UINT and at[12] == UINT:
        # Most dispositions have their first four fields in this form, so these fields are checked together.
        if not TRUE_VALUE <= at[6] <= FALSE_VALUE or not _is_flag(at[17]):
            return False
        if four_bytes(at + 13) - four_bytes(at + 8) > MOST_SERIAL:
            return False
        at += NUMBERED_BYTES
    else:
        at += PLAIN_HEAD_BYTES
        if at >= end or not TRUE_VALUE <= at[0] <= FALSE_VALUE:
            return False
        at = _after_uint(at + 1, end, &first)
        if at is NULL:
            return False
        if count > 2:
            at = _after_uint_or_null(at, end, &last, &has_last)
            if at is NULL or (has_last and last - first > MOST_SERIAL):
                return False
        if count > 3:
            if at >= end or not _is_flag(at[0]):
                return False
            at += 1
    if count > 4:
        at = _after_state(at, end)
        if at is NULL:
            return False
    if count > 5:
        if at >= end or not _is_flag(at[0]):
            return False
        at += 1
    return at == end


cdef inline const unsigned char *_after_state(const unsigned char *at, const unsigned char *end) noexcept:
    """Return the place behind the null at ``at``, or the outcome without fields in its common encoding; else NULL."""
    cdef unsigned int head
    if at < end and at[0] == NULL_VALUE:
        return at + 1
    if end - at < 4:
        return NULL
    # The mask makes all outcomes alike: their codes, 0x24 to 0x27, differ in the last two bits only.
    head = four_bytes(at) & ~<unsigned int>0x300
    if head == PLAIN_OUTCOME:
        return at + 4
    if head == LISTED_OUTCOME and end - at >= 6 and at[4] == 1 and at[5] == 0:
        return at + 6
    return NULL


def transfer_in(const unsigned char[:] body not None):
    """Return (handle, has id and tag, has more) of a transfer of the common form; None for another body. For tests."""
    cdef PlainTransfer transfer
    cdef size_t size = body.shape[0]
    if size < PLAIN_HEAD_BYTES or four_bytes(&body[0]) != PLAIN_TRANSFER:
        return None
    if not is_plain_transfer(&body[0], &body[0] + size, &transfer):
        return None
    return transfer.handle, bool(transfer.is_first), bool(transfer.has_more)


def is_disposition(const unsigned char[:] body not None):
    """Say whether ``body`` is a disposition of the common form. For tests."""
    cdef size_t size = body.shape[0]
    if size < PLAIN_HEAD_BYTES or four_bytes(&body[0]) != PLAIN_DISPOSITION:
        return False
    return bool(is_plain_disposition(&body[0], &body[0] + size))

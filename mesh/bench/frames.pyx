"""Reads and writes the frames that are sent for each message: transfer, disposition, flow.

No byte behind the end of a frame is read. All other frames (open, attach, ...) are in `mesh.bench.performatives`.
Spec: AMQP 1.0 [1.6] constructors, [2.3.1] frame layout, [2.7.4] flow, [2.7.5] transfer, [2.7.6] disposition.
"""

from mesh.bench.faults import Malformed

cdef enum:
    LIST0 = 0x45
    LIST8 = 0xC0
    LIST32 = 0xD0
    MAX_DEPTH = 8
    DATA = 0x75
    VALUE = 0x77


cdef u32 read32(const u8 *at) noexcept nogil:
    return (<u32>at[0] << 24) | (<u32>at[1] << 16) | (<u32>at[2] << 8) | at[3]


cdef u64 read64(const u8 *at) noexcept nogil:
    return (<u64>read32(at) << 32) | read32(at + 4)


cdef void write32(u8 *at, u32 value) noexcept nogil:
    at[0], at[1], at[2], at[3] = value >> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255


cdef void write64(u8 *at, u64 value) noexcept nogil:
    write32(at, value >> 32)
    write32(at + 4, <u32>value)


cdef int malformed(str what) except -1:
    raise Malformed(f"not AMQP 1.0: {what}")


# Reading values. [1.6]
cdef int read_uint(const u8 **at, const u8 *end, u32 *value) except -1:
    """Read a uint into ``value`` and move ``at`` behind it; return 1, or 0 (and a value of 0) for null."""
    cdef const u8 *here = at[0]
    cdef int size
    if here >= end:
        return malformed("a frame ends in the middle of a field")
    if here[0] == 0x70:
        size = 5
    elif here[0] == 0x52:
        size = 2
    elif here[0] == 0x43 or here[0] == 0x40:
        at[0] = here + 1
        value[0] = 0
        return here[0] == 0x43
    else:
        return malformed(f"expected a uint, got a field of type 0x{here[0]:02x}")
    if end - here < size:
        return malformed("a frame ends in the middle of a number")
    value[0] = read32(here + 1) if size == 5 else here[1]
    at[0] = here + size
    return 1


cdef int read_bool(const u8 **at, const u8 *end) except -1:
    """Read a boolean, and move ``at`` behind it; null counts as false, which is the default of every field read
    here.
    """
    cdef const u8 *here = at[0]
    if here >= end:
        return malformed("a frame ends in the middle of a field")
    if here[0] == 0x56:
        if end - here < 2:
            return malformed("a frame ends in the middle of a boolean")
        at[0] = here + 2
        return here[1] != 0
    if here[0] != 0x40 and here[0] != 0x41 and here[0] != 0x42:
        return malformed(f"expected a boolean, got a field of type 0x{here[0]:02x}")
    at[0] = here + 1
    return here[0] == 0x41


cdef int skip_value(const u8 **at, const u8 *end, int depth) except -1:
    cdef const u8 *here = at[0]
    cdef size_t size, room
    cdef int kind, constructor
    if here >= end:
        return malformed("a frame ends in the middle of a field")
    constructor = here[0]
    kind = constructor >> 4
    here += 1
    room = end - here
    if kind == 0:
        if depth == 0:
            return malformed("descriptors are nested too deeply")
        at[0] = here
        skip_value(at, end, depth - 1)
        return skip_value(at, end, depth - 1)
    if kind == 4:
        size = 0
    elif 5 <= kind <= 9:
        size = 1 << (kind - 5)
    elif kind == 0xA or kind == 0xC or kind == 0xE:
        if room < 1:
            return malformed("a value without its size")
        size = 1 + <size_t>here[0]
    elif kind == 0xB or kind == 0xD or kind == 0xF:
        if room < 4:
            return malformed("a value without its size")
        size = 4 + <size_t>read32(here)
    else:
        return malformed(f"unknown constructor 0x{constructor:02x}")
    if size > room:
        return malformed("a value that is longer than its frame")
    at[0] = here + size
    return 0


cdef int read_code(const u8 **at, const u8 *end) except -1:
    """Return the numeric descriptor of the next value, and move ``at`` behind the descriptor. Raise Malformed if the
    next value has no such descriptor.
    """
    cdef const u8 *here = at[0]
    if end - here >= 3 and here[0] == 0 and here[1] == 0x53:
        at[0] = here + 3
        return here[2]
    if end - here >= 10 and here[0] == 0 and here[1] == 0x80:
        at[0] = here + 10
        return <int>(read64(here + 2) & 0x7FFFFFFF)
    return malformed("expected a numeric descriptor")


cdef int open_list(const u8 **at, const u8 *end, u32 *count, const u8 **list_end) except -1:
    cdef const u8 *here = at[0]
    cdef size_t room = end - here
    cdef size_t size, head
    if room >= 1 and here[0] == LIST0:
        count[0] = 0
        at[0] = list_end[0] = here + 1
        return 0
    if room >= 3 and here[0] == LIST8:
        head, size, count[0] = 2, here[1], here[2]
        at[0] = here + 3
    elif room >= 9 and here[0] == LIST32:
        head, size, count[0] = 5, read32(here + 1), read32(here + 5)
        at[0] = here + 9
    else:
        return malformed("expected a list")
    if size > room - head or here + head + size < at[0]:
        return malformed("a list that is longer than its frame")
    list_end[0] = here + head + size
    return 0


# Reading frames.
cdef int take_frame(const u8 *start, const u8 *end, u32 max_bytes, Frame *frame) except -1:
    """Return 1 and fill ``frame`` if a whole frame begins at ``start``; return 0 if more bytes are needed.

    An empty frame has code 0. Raise Malformed for a frame that is not AMQP 1.0. [2.3.1]
    """
    cdef size_t room = end - start
    cdef u32 size
    if room < 8:
        return 0
    size = read32(start)
    if size < 8 or size > max_bytes:
        return malformed(f"expected a frame of 8 to {max_bytes} bytes, got {size}")
    if start[4] < 2 or <u32>start[4] * 4 > size:
        return malformed(f"data offset {start[4]} in a frame of {size} bytes")
    if start[5] != 0:
        return malformed(f"expected a frame of type 0 (AMQP), got {start[5]}")
    if room < size:
        return 0
    frame.start = start
    frame.channel = (<u32>start[6] << 8) | start[7]
    frame.at = start + start[4] * 4
    frame.end = start + size
    frame.code = 0
    if frame.at < frame.end:
        frame.code = read_code(&frame.at, frame.end)
        open_list(&frame.at, frame.end, &frame.field_count, &frame.fields_end)
    return 1


cdef int read_transfer(Frame *frame, Transfer *transfer) except -1:
    """Read the fields of a transfer, and find its payload.

    The handle is skipped, because the load generator has one link in each session. [2.7.5]
    """
    cdef const u8 *at = frame.at
    cdef const u8 *end = frame.fields_end
    cdef u32 index
    transfer.has_id = transfer.is_settled = transfer.has_more = transfer.is_aborted = False
    for index in range(frame.field_count):
        if index == 1:
            transfer.has_id = read_uint(&at, end, &transfer.delivery_id)
        elif index == 4:
            transfer.is_settled = read_bool(&at, end)
        elif index == 5:
            transfer.has_more = read_bool(&at, end)
        elif index == 9:
            transfer.is_aborted = read_bool(&at, end)
        else:
            skip_value(&at, end, MAX_DEPTH)
    transfer.payload = end
    transfer.payload_bytes = frame.end - end
    return 0


cdef int read_disposition(Frame *frame, Disposition *disposition) except -1:
    """Read the fields of a disposition; ``state`` is the descriptor of the delivery state, or 0 without a state.
    [2.7.6]
    """
    cdef const u8 *at = frame.at
    cdef const u8 *end = frame.fields_end
    cdef const u8 *inside
    cdef u32 index
    cdef bint has_last = False
    disposition.is_from_receiver = disposition.is_settled = False
    disposition.first = disposition.last = 0
    disposition.state = 0
    for index in range(frame.field_count):
        if index == 0:
            disposition.is_from_receiver = read_bool(&at, end)
        elif index == 1:
            read_uint(&at, end, &disposition.first)
        elif index == 2:
            has_last = read_uint(&at, end, &disposition.last)
        elif index == 3:
            disposition.is_settled = read_bool(&at, end)
        else:
            inside = at
            skip_value(&at, end, MAX_DEPTH)
            if index == 4 and inside[0] == 0:
                disposition.state = read_code(&inside, at)
    if not has_last:
        disposition.last = disposition.first
    return 0


cdef int read_flow(Frame *frame, Flow *flow) except -1:
    cdef const u8 *at = frame.at
    cdef const u8 *end = frame.fields_end
    cdef u32 index
    cdef u32 ignored
    flow.has_next_incoming_id = flow.has_handle = flow.has_delivery_count = False
    flow.wants_drain = flow.wants_echo = False
    flow.next_incoming_id = flow.incoming_window = flow.delivery_count = flow.credit = 0
    for index in range(frame.field_count):
        if index == 0:
            flow.has_next_incoming_id = read_uint(&at, end, &flow.next_incoming_id)
        elif index == 1:
            read_uint(&at, end, &flow.incoming_window)
        elif index == 4:
            flow.has_handle = read_uint(&at, end, &ignored)
        elif index == 5:
            flow.has_delivery_count = read_uint(&at, end, &flow.delivery_count)
        elif index == 6:
            read_uint(&at, end, &flow.credit)
        elif index == 8:
            flow.wants_drain = read_bool(&at, end)
        elif index == 9:
            flow.wants_echo = read_bool(&at, end)
        else:
            skip_value(&at, end, MAX_DEPTH)
    return 0


def codes(const u8[::1] buffer not None):
    """Return the complete performatives at the front of ``buffer``, and the number of bytes of their frames.

    Each performative is given as (code, channel, offset of its frame). Raise Malformed for bytes that are not AMQP 1.0.
    """
    cdef Frame frame
    cdef const u8 *start = &buffer[0] if buffer.shape[0] else NULL
    cdef const u8 *at = start
    cdef const u8 *end = start + buffer.shape[0]
    cdef list found = []
    while at is not NULL and take_frame(at, end, 65536, &frame):
        if frame.code:
            found.append((frame.code, frame.channel, at - start))
        at = frame.end
    return found, at - start


# Reading the body of a message.
cdef int read_stamp(const u8 *payload, size_t size, Stamp *stamp) except -1:
    """Find the message's body behind the sections before it, and read the generator's stamp into ``stamp``.

    Return 1 if the whole stamp is in this payload, else 0: then the message does not count as the generator's. [3.2]
    """
    cdef const u8 *at = payload
    cdef const u8 *end = payload + size
    cdef int section
    while at < end:
        section = read_code(&at, end)
        if section == DATA or section == VALUE:
            return read_body(at, end, stamp)
        skip_value(&at, end, MAX_DEPTH)
    return 0


cdef int read_body(const u8 *at, const u8 *end, Stamp *stamp) except -1:
    cdef size_t room = end - at
    if room >= 2 and at[0] == 0xA0:
        stamp.body_bytes = at[1]
        at += 2
    elif room >= 5 and at[0] == 0xB0:
        stamp.body_bytes = read32(at + 1)
        at += 5
    else:
        return 0
    stamp.present_bytes = end - at
    if stamp.body_bytes < STAMP_BYTES or stamp.present_bytes < STAMP_BYTES:
        return 0
    stamp.run, stamp.number, stamp.sent_ns = read32(at), read32(at + 4), read64(at + 8)
    return 1


# Writing frames. Each number has a fixed width, so that a frame takes few instructions.
cdef u8 *write_head(u8 *at, u32 channel, int code, int fields) noexcept nogil:
    """Write the head of a frame, except the sizes of frame and list, which `write_sizes` fills in; return the place of
    the first field.
    """
    at[4], at[5], at[6], at[7] = 2, 0, (channel >> 8) & 255, channel & 255
    at[8], at[9], at[10] = 0, 0x53, code
    at[11], at[13] = LIST8, fields
    return at + 14


cdef size_t write_sizes(u8 *at, u8 *fields_end, size_t payload_bytes) noexcept nogil:
    at[12] = <u8>(fields_end - at - 13)
    write32(at, <u32>(fields_end - at + payload_bytes))
    return fields_end - at


cdef u8 *put_uint(u8 *at, u32 value) noexcept nogil:
    at[0] = 0x70
    write32(at + 1, value)
    return at + 5


cdef u8 *put_bool(u8 *at, bint value) noexcept nogil:
    at[0] = 0x41 if value else 0x42
    return at + 1


cdef size_t write_transfer_head(
    u8 *at, u32 channel, u32 number, bint is_first, bint is_settled, bint has_more, size_t payload_bytes
) noexcept nogil:
    """Write a transfer up to its payload, and return the number of bytes.

    ``number`` is delivery-id and delivery-tag of the delivery; both are null unless ``is_first``. The handle is 0.
    """
    cdef u8 *here = write_head(at, channel, TRANSFER, 6)
    here[0] = 0x43
    here += 1
    if is_first:
        here = put_uint(here, number)
        here[0], here[1] = 0xA0, 4
        write32(here + 2, number)
        here[6] = 0x43
        here += 7
    else:
        here[0] = here[1] = here[2] = 0x40
        here += 3
    here = put_bool(put_bool(here, is_settled), has_more)
    return write_sizes(at, here, payload_bytes)


cdef size_t write_disposition(u8 *at, u32 channel, bint is_receiver, u32 first, u32 last, int state) noexcept nogil:
    """Write a disposition that settles deliveries with the outcome ``state`` (0 for none); return the number of
    bytes.
    """
    cdef u8 *here = write_head(at, channel, DISPOSITION, 5)
    here = put_bool(here, is_receiver)
    here = put_bool(put_uint(put_uint(here, first), last), True)
    if state == 0:
        here[0] = 0x40
        here += 1
    else:
        here[0], here[1], here[2], here[3] = 0, 0x53, state, LIST0
        here += 4
    return write_sizes(at, here, 0)


cdef size_t write_flow(
    u8 *at, u32 channel, u32 next_incoming_id, u32 next_outgoing_id, u32 delivery_count, u32 credit, bint is_drained
) noexcept nogil:
    cdef u8 *here = write_head(at, channel, FLOW, 9)
    here = put_uint(put_uint(here, next_incoming_id), MAX_WINDOW)
    here = put_uint(put_uint(here, next_outgoing_id), MAX_WINDOW)
    here[0] = 0x43
    here = put_uint(put_uint(here + 1, delivery_count), credit)
    here[0] = 0x40
    return write_sizes(at, put_bool(here + 1, is_drained), 0)


cdef size_t write_empty(u8 *at) noexcept nogil:
    write32(at, EMPTY_FRAME_BYTES)
    at[4], at[5], at[6], at[7] = 2, 0, 0, 0
    return EMPTY_FRAME_BYTES

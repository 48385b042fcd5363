# Reading and writing, in C, of the frames that the load generator sends and receives for each message.

ctypedef unsigned char u8
ctypedef unsigned int u32
ctypedef unsigned long long u64

cdef enum:
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15

cdef enum:
    MAX_WINDOW = 0x7FFFFFFF
    # Bytes of the stamp at the start of a body: run, number, nanoseconds.
    STAMP_BYTES = 16
    # Bytes of the longest frame without a payload that is written here.
    SMALL_FRAME_BYTES = 64
    TRANSFER_HEAD_BYTES = 29
    CONTINUED_HEAD_BYTES = 20
    EMPTY_FRAME_BYTES = 8

cdef struct Frame:
    const u8 *start
    const u8 *at
    const u8 *end
    u32 channel
    int code
    u32 field_count
    const u8 *fields_end

cdef struct Transfer:
    u32 delivery_id
    bint has_id
    bint is_settled
    bint has_more
    bint is_aborted
    const u8 *payload
    size_t payload_bytes

cdef struct Disposition:
    bint is_from_receiver
    u32 first
    u32 last
    bint is_settled
    int state

cdef struct Flow:
    bint has_next_incoming_id
    u32 next_incoming_id
    u32 incoming_window
    bint has_handle
    bint has_delivery_count
    u32 delivery_count
    u32 credit
    bint wants_drain
    bint wants_echo

cdef struct Stamp:
    u32 run
    u32 number
    u64 sent_ns
    size_t body_bytes
    size_t present_bytes

cdef u32 read32(const u8 *at) noexcept nogil
cdef u64 read64(const u8 *at) noexcept nogil
cdef void write32(u8 *at, u32 value) noexcept nogil
cdef void write64(u8 *at, u64 value) noexcept nogil

cdef int take_frame(const u8 *start, const u8 *end, u32 max_bytes, Frame *frame) except -1
cdef int read_transfer(Frame *frame, Transfer *transfer) except -1
cdef int read_disposition(Frame *frame, Disposition *disposition) except -1
cdef int read_flow(Frame *frame, Flow *flow) except -1
cdef int read_stamp(const u8 *payload, size_t size, Stamp *stamp) except -1

cdef size_t write_transfer_head(
    u8 *at, u32 channel, u32 number, bint is_first, bint is_settled, bint has_more, size_t payload_bytes
) noexcept nogil
cdef size_t write_disposition(u8 *at, u32 channel, bint is_receiver, u32 first, u32 last, int state) noexcept nogil
cdef size_t write_flow(
    u8 *at, u32 channel, u32 next_incoming_id, u32 next_outgoing_id, u32 delivery_count, u32 credit, bint is_drained
) noexcept nogil
cdef size_t write_empty(u8 *at) noexcept nogil

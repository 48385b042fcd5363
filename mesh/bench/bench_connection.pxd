# The connections and links of the load generator, which its producers and consumers extend.

from mesh.bench.frames cimport Disposition, Flow, Frame, Transfer, u8, u32

cdef enum:
    READ_BYTES = 65536
    OUT_BOUND_BYTES = 65536

cdef double clock() noexcept nogil

cdef class BenchLink


cdef class BenchConnection:
    """A connection whose handshake is done; each of its links has a session of its own."""

    cdef readonly int socket
    cdef readonly u32 peer_frame_bytes
    cdef list links
    cdef list by_channel
    cdef u8 *inbox
    cdef size_t inbox_from, inbox_to
    cdef u8 *outbox
    cdef size_t outbox_from, outbox_to, outbox_room
    cdef bint is_blocked, is_kernel_full
    cdef double beat_s
    cdef double said_at
    cdef readonly double moved_at
    cdef u32 unsent_bound_bytes
    cdef size_t turn

    cdef u8 *room(self, size_t size) except NULL
    cdef void wrote(self, size_t size) noexcept
    cdef bint fill(self, double now) except -1
    cdef bint _has_kernel_enough(self) noexcept
    cdef int flush(self, double now) except -1
    cdef int read_some(self) except -1
    cdef int parse(self) except -1
    cdef int on_frame(self, Frame *frame, double now) except -1
    cdef bint is_done(self) except -1
    cdef double due_at(self, double now) noexcept


cdef class BenchLink:
    cdef BenchConnection carrier
    cdef readonly u32 channel
    cdef readonly str what
    cdef u32 next_outgoing_id, next_incoming_id, delivery_count
    cdef long long remote_window, credit
    cdef public bint is_done
    cdef readonly double started_at, ended_at

    cdef bint produce(self, double now) except -1
    cdef int on_transfer(self, Transfer *transfer, double now) except -1
    cdef int on_disposition(self, Disposition *disposition, double now) except -1
    cdef int on_flow(self, Flow *flow, double now) except -1
    cdef int end_batch(self, double now) except -1
    cdef double due_at(self, double now) noexcept
    cdef int say_flow(self, u32 credit, bint is_drained) except -1

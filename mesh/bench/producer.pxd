from mesh.bench.bench_connection cimport BenchLink
from mesh.bench.frames cimport u8, u32, u64


cdef class BenchProducer(BenchLink):
    cdef readonly u32 count, sent, settled, settled_twice
    cdef bint is_presettled
    cdef u32 run
    cdef size_t body_bytes, payload_bytes, payload_at
    cdef double bytes_per_s
    cdef u8 prefix[512]
    cdef size_t prefix_bytes
    cdef u8 *frame
    cdef size_t frame_bytes
    cdef u8 *outcomes
    cdef u32 tally[256]
    cdef u64 *stamps

    cdef u32 limit(self, double now) except? 0xFFFFFFFF
    cdef bint _produce_whole(self, u32 limit, double now) except -1
    cdef bint _produce_part(self, u32 limit, double now) except -1
    cdef void _stamp_frame(self, u8 *payload) noexcept
    cdef double _next_part_at(self) noexcept
    cdef void _copy_payload(self, u8 *to, size_t size) noexcept
    cdef void _count_sent(self, double now) noexcept
    cdef void _look_done(self, double now) noexcept
    cdef void _settle(self, u32 number, int state, double now) noexcept


cdef class BoundedProducer(BenchProducer):
    cdef u32 in_flight
    cdef double *sent_at
    cdef double *took_s


cdef class PacedProducer(BenchProducer):
    cdef double interval_s, seconds
    cdef u32 seen
    cdef list companions
    cdef readonly bint is_ended

    cdef int _see(self, double now) except -1
    cdef bint _are_companions_done(self) except -1

from mesh.bench.bench_connection cimport BenchLink
from mesh.bench.frames cimport Stamp, u8, u32, u64
from mesh.bench.producer cimport PacedProducer


cdef class BenchConsumer(BenchLink):
    cdef readonly u32 count, received, doubled, reordered, foreign, damaged
    cdef u32 run, window, next
    cdef size_t body_bytes
    cdef bint is_each, is_granted
    cdef u8 *seen
    # The delivery whose frames are arriving.
    cdef bint is_partial, is_partial_settled, is_ours
    cdef u32 partial_id
    cdef long long missing_bytes
    cdef Stamp stamp
    # The range of deliveries that is settled at the end of the batch of frames.
    cdef bint has_range
    cdef u32 first, last

    cdef int _begin(self, const u8 *payload, size_t size) except -1
    cdef int _finish(self, double now) except -1
    cdef int _note(self, double now) except -1
    cdef int _settle(self, u32 number) except -1
    cdef int _say_settled(self, u32 first, u32 last) except -1


cdef class TimedConsumer(BenchConsumer):
    cdef PacedProducer source
    cdef u64 *sent_ns
    cdef u64 *took_ns
    cdef u32 sample_count

from mesh.bench.consumer cimport BenchConsumer
from mesh.bench.frames cimport u8, u32, u64
from mesh.bench.producer cimport BenchProducer


cdef class SharedReceipts:
    cdef readonly u32 count, received
    cdef readonly double ended_at
    cdef u8 *seen
    cdef u64 *took_ns


cdef class SharingConsumer(BenchConsumer):
    cdef SharedReceipts receipts


cdef class TurnProducer(BenchProducer):
    cdef u32 index, step, allowed

    cdef int allow(self, double now) except -1


cdef class SendingTurns:
    cdef readonly list producers
    cdef readonly u32 count, released
    cdef readonly double started_at
    cdef double interval_s

    cdef bint are_settled(self) except -1

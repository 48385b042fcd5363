from mesh.bench.frames cimport u8, u32
from mesh.bench.producer cimport BenchProducer


cdef class AddressingProducer(BenchProducer):
    cdef str addresses
    cdef u32 first, step, address_count, digit_count
    cdef size_t digits_at

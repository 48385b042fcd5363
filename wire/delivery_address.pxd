cdef struct Span:
    size_t start
    size_t end


cdef Span delivery_annotations_of(const unsigned char *message, size_t size) noexcept
cdef bytes addressed_section(const unsigned char *section, size_t size, bytes address)
cpdef bytes with_to(bytes message, bytes address)
cpdef bytes addressed_start(bytes start, bytes address, bint fills_to)

from router.forwarding.ends cimport Inlet, Taker


cdef unsigned int note_choice(
    unsigned int recording, dict takers, Inlet inlet, Taker chosen, unsigned long long turn, list tried, size_t size,
    bint is_closest, int nearest,
) except? 0  # fmt: skip
cdef unsigned int note_again(
    unsigned int recording, dict takers, Inlet inlet, Taker chosen, unsigned long long turn, list tried, size_t size,
    bint is_closest, int nearest,
) except? 0  # fmt: skip
cdef int note_wait(unsigned int recording, dict takers, Inlet inlet, size_t size, int nearest) except -1
cdef unsigned int note_refusal(unsigned int recording, dict takers, Inlet inlet, size_t size, int nearest) except? 0
cdef unsigned int note_copies(
    unsigned int recording, list takers, Inlet inlet, list ready, size_t size, bint is_begun
) except? 0  # fmt: skip
cdef unsigned int note_untaken(unsigned int recording, Inlet inlet, size_t size, size_t outcome) except? 0

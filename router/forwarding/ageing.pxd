from recording.records cimport Recorder


cdef bint has_time_left(Recorder recorder, char *message, size_t size, unsigned long long *counted_us) noexcept

"""Sums over the deliveries and messages of one second, by kind, links, outcome, part and latency bucket.

Buckets are the same as in `recording.columns.bucket_of`. Not thread-safe.
"""

from libc.stdlib cimport calloc, free

cdef extern from *:
    int leading_zeros "__builtin_clz"(unsigned int) noexcept nogil

cdef enum:
    PLACES = 8192
    MOST = 4096
    SUBDIVISIONS = 16
    SHIFT = 4

cdef unsigned int LARGEST = 0xFFFFFFFF


cdef class TrafficSums:
    """A hash table of sums: deliveries equal in links, outcome, part, kind and latency bucket are counted together.

    Messages of queues are counted in the same way. The table holds at most ``MOST`` sums at a time.
    """

    def __cinit__(self):
        self.table = <Alike *>calloc(PLACES, sizeof(Alike))
        self.places = <unsigned int *>calloc(MOST, sizeof(unsigned int))
        if self.table is NULL or self.places is NULL:
            raise MemoryError("out of memory for the counts of a second")

    def __dealloc__(self):
        free(self.table)
        free(self.places)

    cdef bint add(
        self, unsigned int incoming, unsigned int outgoing, unsigned int took_us, unsigned int size_bytes,
        unsigned char outcome, unsigned char part, unsigned char kind,
    ) noexcept:  # fmt: skip
        """Count a delivery in the sum of equal deliveries; return True.

        If a new sum finds the table full, or the bytes of the sum would overflow, count nothing and return False. The
        caller then writes the sums to the ring, calls `clear` and adds the delivery again.
        """
        cdef unsigned short bucket = bucket_of(took_us)
        cdef unsigned int place = _place_of(incoming, outgoing, bucket, outcome, part, kind)
        cdef Alike *alike = &self.table[place]
        while alike.count and not (
            alike.incoming == incoming and alike.outgoing == outgoing and alike.bucket == bucket
            and alike.outcome == outcome and alike.part == part and alike.kind == kind
        ):  # fmt: skip
            place = (place + 1) % PLACES
            alike = &self.table[place]
        if not alike.count:
            if self.used == MOST:
                return False
            self.places[self.used] = place
            self.used += 1
            alike.incoming, alike.outgoing, alike.bucket = incoming, outgoing, bucket
            alike.outcome, alike.part, alike.kind = outcome, part, kind
        elif LARGEST - alike.size_bytes < size_bytes:
            return False
        alike.count += 1
        alike.size_bytes += size_bytes
        alike.took_us = max(alike.took_us, took_us)
        return True

    cdef Alike at(self, unsigned int number) noexcept:
        return self.table[self.places[number]]

    cdef void clear(self) noexcept:
        cdef unsigned int number
        for number in range(self.used):
            self.table[self.places[number]] = Alike(0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.used = 0


cdef unsigned int _place_of(
    unsigned int incoming, unsigned int outgoing, unsigned short bucket, unsigned char outcome, unsigned char part,
    unsigned char kind,
) noexcept:
    cdef unsigned long long mixed = (<unsigned long long>incoming << 32) ^ outgoing
    mixed ^= (<unsigned long long>bucket << 20) ^ (<unsigned int>outcome << 8) ^ (<unsigned int>kind << 4) ^ part
    mixed *= 0x9E3779B97F4A7C15u
    return <unsigned int>(mixed >> 40) % PLACES


cdef unsigned short bucket_of(unsigned int took_us) noexcept:
    cdef int octave
    if took_us < SUBDIVISIONS:
        return <unsigned short>took_us
    octave = 31 - leading_zeros(took_us)
    return <unsigned short>(SUBDIVISIONS * (octave - SHIFT + 1) + (took_us >> (octave - SHIFT)) - SUBDIVISIONS)


def bucket(unsigned int took_us):
    """Return the latency bucket of ``took_us``, for tests against `recording.columns.bucket_of`."""
    return bucket_of(took_us)

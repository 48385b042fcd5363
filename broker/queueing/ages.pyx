"""The arrival times of messages, from samples of (id, time): an id has the time of the last sample at or below the id.

Ids rise with time. The latest message is dated to the millisecond, an older message to a thousandth of its age. A
message from before the broker started gets the time of the first sample, since its own arrival time is unknown.
"""

from libc.stdlib cimport calloc, free

cdef enum:
    # The most samples of arrival times that are kept; each takes 16 bytes.
    MOST = 65536
    APART_US = 1000
    SHARE = 2048


cdef class Ages:
    """Samples of ids and arrival times, from which the arrival time of any message is found."""

    def __cinit__(self):
        self.ids = <long long *>calloc(MOST, sizeof(long long))
        self.times_us = <unsigned long long *>calloc(MOST, sizeof(long long))
        if self.ids is NULL or self.times_us is NULL:
            raise MemoryError("out of memory for the arrival times of messages")

    def __dealloc__(self):
        free(self.ids)
        free(self.times_us)

    cdef void note(self, long long message_id, unsigned long long now_us) noexcept:
        """Add a sample: the message with this id came at ``now_us``.

        A sample is ignored within a millisecond of the last one, and if its id is not above the last sampled id.
        """
        if self.count and (
            now_us < self.times_us[self.count - 1] + APART_US or message_id <= self.ids[self.count - 1]
        ):  # fmt: skip
            return
        if self.count == MOST:
            self._thin_out(now_us)
        self.ids[self.count], self.times_us[self.count] = message_id, now_us
        self.count += 1

    cdef void _thin_out(self, unsigned long long now_us) noexcept:
        """Drop samples closer together than 1/SHARE of their age; half of MOST samples are then enough for a year."""
        cdef int number, kept = 1
        for number in range(1, self.count):
            if self.times_us[number] - self.times_us[kept - 1] >= (now_us - self.times_us[number]) // SHARE:
                self.ids[kept], self.times_us[kept] = self.ids[number], self.times_us[number]
                kept += 1
        self.count = kept

    cdef unsigned long long came_at_us(self, long long message_id) noexcept:
        """Return the time of the last sample whose id is at or below ``message_id``, in microseconds.

        The time of the first sample for a lower id; 0 if no sample was noted yet.
        """
        cdef int low = 0, high = self.count, middle
        if not self.count:
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            if self.ids[middle] <= message_id:
                low = middle
            else:
                high = middle
        return self.times_us[low]

    # These Python methods, for tests, call the C functions above.
    def hear(self, long long message_id, unsigned long long now_us):
        self.note(message_id, now_us)

    def came_at(self, long long message_id):
        return self.came_at_us(message_id)

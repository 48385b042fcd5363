"""When did a message come? Ids rise with time, so one that is noted with its time now and then tells it of all.

To the millisecond for the latest, and to a thousandth of the time since then for the others. Of what was there before the
broker started it is not known: then when the first came after that.
"""

from libc.stdlib cimport calloc, free

cdef enum:
    # Of samples; 16 bytes each.
    MOST = 65536
    APART_US = 1000
    SHARE = 2048


cdef class Ages:
    def __cinit__(self):
        self.ids = <long long *>calloc(MOST, sizeof(long long))
        self.times_us = <unsigned long long *>calloc(MOST, sizeof(long long))
        if self.ids is NULL or self.times_us is NULL:
            raise MemoryError("no room to note when messages come")

    def __dealloc__(self):
        free(self.ids)
        free(self.times_us)

    cdef void note(self, long long message_id, unsigned long long now_us) noexcept:
        """The message came now; one with a lower id than the last that is noted came before, and is not."""
        if self.count and (
            now_us < self.times_us[self.count - 1] + APART_US or message_id <= self.ids[self.count - 1]
        ):  # fmt: skip
            return
        if self.count == MOST:
            self._thin_out(now_us)
        self.ids[self.count], self.times_us[self.count] = message_id, now_us
        self.count += 1

    cdef void _thin_out(self, unsigned long long now_us) noexcept:
        """Of those long ago not so many are needed; half of the room is enough for a year."""
        cdef int number, kept = 1
        for number in range(1, self.count):
            if self.times_us[number] - self.times_us[kept - 1] >= (now_us - self.times_us[number]) // SHARE:
                self.ids[kept], self.times_us[kept] = self.ids[number], self.times_us[number]
                kept += 1
        self.count = kept

    cdef unsigned long long came_at_us(self, long long message_id) noexcept:
        """0: none was noted yet."""
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

    # For tests
    def hear(self, long long message_id, unsigned long long now_us):
        self.note(message_id, now_us)

    def came_at(self, long long message_id):
        return self.came_at_us(message_id)

"""Is a message that this router held still to be delivered, and for how long? [3.2.1], [3.2.4]

The time it was held is taken from its ttl, in place and before its first byte leaves. What passes within one input is
not looked at.
"""

from wire.records cimport recorder
from wire.sections cimport lower_ttl

cdef long long _wall_offset_ms = 0


def set_wall_offset(double offset_s):
    """Wall clock less monotonic clock, at the start: a clock that is set later neither expires messages nor holds them."""
    global _wall_offset_ms
    _wall_offset_ms = <long long>(offset_s * 1000)


cdef bint has_time_left(char *message, size_t size, unsigned long long *counted_us) noexcept:
    """False: it has expired. ``message`` is its beginning, whose ttl counts from ``counted_us``, which becomes now."""
    cdef unsigned long long held_ms
    if recorder.now_us <= counted_us[0]:
        return True
    held_ms = (recorder.now_us - counted_us[0]) // 1000
    if not held_ms:
        return True
    counted_us[0] += held_ms * 1000
    return lower_ttl(<unsigned char *>message, size, held_ms, <long long>(recorder.now_us // 1000) + _wall_offset_ms)

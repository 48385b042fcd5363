"""Lower the ttl of messages by the time this router held them, and find expired messages. [3.2.1], [3.2.4]

The ttl is changed in place, before the first byte of the message leaves. A message passed on within one input is left
as it is.
"""

from recording.records cimport recorder
from wire.sections cimport lower_ttl

cdef long long _wall_offset_ms = 0


def set_wall_offset(double offset_s):
    """Set wall clock less monotonic clock, once at the start: a clock set later cannot expire or revive messages."""
    global _wall_offset_ms
    _wall_offset_ms = <long long>(offset_s * 1000)


cdef bint has_time_left(char *message, size_t size, unsigned long long *counted_us) noexcept:
    """False if the message has expired. ``message`` is its start; the ttl counts from ``counted_us``, set to now."""
    cdef unsigned long long held_ms
    if recorder.now_us <= counted_us[0]:
        return True
    held_ms = (recorder.now_us - counted_us[0]) // 1000
    if not held_ms:
        return True
    counted_us[0] += held_ms * 1000
    return lower_ttl(<unsigned char *>message, size, held_ms, <long long>(recorder.now_us // 1000) + _wall_offset_ms)

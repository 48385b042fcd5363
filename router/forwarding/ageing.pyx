"""Lower the ttl of messages by the time this router held them, and find expired messages. [3.2.1], [3.2.4]

The ttl is changed in place, before the first byte of the message leaves. A message passed on within one input is left
as it is.
"""

from recording.records cimport Recorder
from wire.sections cimport lower_ttl


cdef bint has_time_left(Recorder recorder, char *message, size_t size, unsigned long long *counted_us) noexcept:
    """False if the message has expired by the time of ``recorder``, the node's clock.

    ``message`` is its start; the ttl counts from ``counted_us``, set to now.
    """
    cdef unsigned long long held_ms
    if recorder.now_us <= counted_us[0]:
        return True
    held_ms = (recorder.now_us - counted_us[0]) // 1000
    if not held_ms:
        return True
    counted_us[0] += held_ms * 1000
    return lower_ttl(<unsigned char *>message, size, held_ms, <long long>(recorder.now_us // 1000) + recorder.wall_offset_ms)

"""Lower the ttl of messages by the time that this router held the messages; find expired ones. [3.2.1], [3.2.4]

The ttl in the message's header is changed in place, before the first byte of the message leaves. A message that was
held for less than a millisecond keeps its ttl.
"""

from recording.records cimport Recorder
from wire.sections cimport lower_ttl


cdef bint has_time_left(Recorder recorder, char *message, size_t size, unsigned long long *counted_us) noexcept:
    """Lower the message's ttl by the time that the message was held here; False if the message has expired.

    ``recorder``: the node's clock. ``message``: the first ``size`` bytes of the message. ``counted_us``: the time up to
    which the ttl was lowered before, set to now in whole milliseconds.
    """
    cdef unsigned long long held_ms
    if recorder.now_us <= counted_us[0]:
        return True
    held_ms = (recorder.now_us - counted_us[0]) // 1000
    if not held_ms:
        return True
    counted_us[0] += held_ms * 1000
    return lower_ttl(<unsigned char *>message, size, held_ms, <long long>(recorder.now_us // 1000) + recorder.wall_offset_ms)

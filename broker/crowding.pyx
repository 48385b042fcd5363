"""Who gives way when bodies that lie in memory alone have taken much of it? Subscriptions that do not last, the largest first.

Else one whose subscriber hangs would take all there is, and every producer of the broker would wait for it.
"""

from broker.held_queue cimport HeldQueue

CROWDED_BYTES = 192 << 20
"""Below what holds all producers back (`PINNED_LIMIT_BYTES`)."""
ROOMY_BYTES = 160 << 20
FEW_BYTES = 1 << 20
"""Who has less is not behind."""

cdef long long _CROWDED_BYTES = CROWDED_BYTES, _ROOMY_BYTES = ROOMY_BYTES, _FEW_BYTES = FEW_BYTES


cdef bint is_crowded(Shelf shelf) noexcept:
    return shelf.pinned_bytes >= _CROWDED_BYTES


cdef bint is_roomy(Shelf shelf) noexcept:
    return shelf.pinned_bytes < _ROOMY_BYTES


cdef HeldQueue furthest_behind(object every, dict spared):
    """Limits, and what to do beyond them, are of those that last. None: nobody is behind."""
    cdef HeldQueue held, found = None
    cdef long long most = _FEW_BYTES
    for held in every:
        if not held.is_subscription or held.row is not None or held in spared:
            continue
        if held.queue.limited_bytes() > most:
            found, most = held, held.queue.limited_bytes()
    return found

"""Find the carrier of an engine's delivery such that a stale pointer is found out, not followed.

A tie is a slot's number and its generation: the slot names the carrier, and the generation changes when the tie ends.
The engine keeps the tie as the delivery's context. The engine pools deliveries, so a pointer kept too long points to
another, live delivery; its tie differs, and the mistake shows.

    tie:   generation (32 bits) | slot + 1 (32 bits)      0 is no tie
"""

from libc.stdlib cimport realloc

cdef struct Slot:
    void *carrier
    unsigned int generation
    unsigned int next_free

cdef Slot *_slots = NULL
cdef unsigned int _capacity = 0
cdef unsigned int _free = 0
cdef unsigned int _used = 0


cdef int _grow() except -1:
    cdef unsigned int capacity = max(1024, 2 * _capacity)
    cdef Slot *slots = <Slot *>realloc(_slots, capacity * sizeof(Slot))
    cdef unsigned int index
    global _slots, _capacity, _free
    if slots is NULL:
        raise MemoryError()
    for index in range(_capacity, capacity):
        slots[index].carrier = NULL
        slots[index].generation = 1
        slots[index].next_free = index + 1
    _slots, _free, _capacity = slots, _capacity, capacity
    return 0


cdef unsigned long long new_tie(void *carrier) except 0:
    """Return a tie to ``carrier``, valid until ``end_tie``."""
    global _free, _used
    cdef unsigned int index
    if _free == _capacity:
        _grow()
    index = _free
    _free = _slots[index].next_free
    _slots[index].carrier = carrier
    _used += 1
    return (<unsigned long long>_slots[index].generation << 32) | (index + 1)


cdef void *carrier_of(unsigned long long tie) noexcept:
    """Return the carrier, NULL for a tie that has ended."""
    cdef unsigned int index = <unsigned int>tie - 1
    if index >= _capacity or _slots[index].generation != <unsigned int>(tie >> 32):
        return NULL
    return _slots[index].carrier


cdef void end_tie(unsigned long long tie) noexcept:
    global _free, _used
    cdef unsigned int index = <unsigned int>tie - 1
    if carrier_of(tie) is NULL:
        return
    _slots[index].carrier = NULL
    _slots[index].generation += 1
    _slots[index].next_free = _free
    _free = index
    _used -= 1


def count():
    """Ties that have not ended: deliveries under way in this process."""
    return _used

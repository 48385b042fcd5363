"""Ties: how the engine's deliveries name their carriers, the router's state of a delivery, without pointers.

A pointer could be stale, and following it would crash. A tie is a slot's number and a generation: the slot points to
the carrier, and the slot's generation changes when the tie ends, so a tie that has ended leads to no carrier. The
engine keeps the tie as the delivery's context. The engine uses the memory of deliveries again, so a pointer to a
delivery that was kept too long points to another, live delivery: that delivery's tie differs, and an error is raised.

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
    """Return a new tie that leads to ``carrier`` until `end_tie` is called with the tie."""
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
    """Return the carrier to which the tie leads, NULL for a tie that has ended."""
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
    """Return the number of ties that have not ended: one for each carrier of deliveries under way in this process."""
    return _used

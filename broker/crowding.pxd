from broker.held_queue cimport HeldQueue
from broker.shelf cimport Shelf


cdef bint is_crowded(Shelf shelf) noexcept
cdef bint is_roomy(Shelf shelf) noexcept
cdef HeldQueue furthest_behind(object every, dict spared)

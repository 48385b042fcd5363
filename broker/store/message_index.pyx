"""The encoding of a segment's index: size, priority, deadline and checksum of each message.

The index has a slot for each message, as FORMAT.md shows: a size, with flags in the high bits, a deadline in ms or 0,
and a checksum, which segments of old formats lack.
"""

from cpython.bytes cimport PyBytes_AS_STRING

SLOT_BYTES = WORDS * sizeof(u64)

cdef enum:
    # This bit of the first slot of an index is set if all slots have a third word, the checksum of the body.
    SUMMED_SHIFT = 60
    # This bit of a message's slot is set if the body is large, and has its own file.
    LARGE_SHIFT = 63
    # These four bits have the message's priority, XOR 4: so 0 means 4, the usual priority, which all messages had
    # before these bits existed.
    PRIORITY_SHIFT = 56
    PRIORITY_BITS = 0xF
    USUAL_PRIORITY = 4
    HIGHEST_PRIORITY = 9


cdef void put_slot(u64 *at, bint is_first, Slot slot, u64 checksum) noexcept:
    """Write the slot of one message, three words of 8 bytes, into an index at ``at``."""
    cdef u64 marks = <u64>(slot.priority ^ USUAL_PRIORITY) << PRIORITY_SHIFT
    at[0] = slot.size_bytes | marks | (<u64>slot.is_large << LARGE_SHIFT) | (<u64>is_first << SUMMED_SHIFT)
    at[1] = slot.expires_at_ms
    at[2] = checksum


cdef class Slots:
    """Decodes the slots of a segment's index one by one; size 0 stands for a message that compaction deleted."""

    def __cinit__(self, bytes message_index not None):
        self.message_index = message_index
        self.words = _words_of(message_index)
        self.count = len(message_index) // (self.words * <Py_ssize_t>sizeof(u64))

    cdef Slot at(self, Py_ssize_t number) noexcept:
        cdef const u64 *at = <const u64 *>PyBytes_AS_STRING(self.message_index) + self.words * number
        cdef Slot slot
        slot.size_bytes = at[0] & ((<u64>1 << PRIORITY_SHIFT) - 1)
        slot.priority = _priority_in(at[0])
        slot.is_large = at[0] >> LARGE_SHIFT != 0
        slot.expires_at_ms = at[1]
        return slot


def read_index(bytes message_index):
    """Return (size_bytes, priority, expires_at_ms or None, is_large) of each slot of an index.

    The size is 0 for a message that compaction deleted.
    """
    cdef Slots slots = Slots(message_index)
    cdef list found = []
    cdef Py_ssize_t number
    cdef Slot slot
    for number in range(slots.count):
        slot = slots.at(number)
        found.append((slot.size_bytes, slot.priority, slot.expires_at_ms or None, bool(slot.is_large)))
    return found


def has_strange_priority(bytes message_index):
    """Whether a slot of an index has a priority above 9, which only damage can cause."""
    cdef Slots slots = Slots(message_index)
    cdef Py_ssize_t number
    for number in range(slots.count):
        if slots.at(number).priority > HIGHEST_PRIORITY:
            return True
    return False


def large_in(bytes message_index):
    """Return (place in the segment, size_bytes) of each message in an index with a large body, in its own file."""
    cdef Slots slots = Slots(message_index)
    cdef list found = []
    cdef Py_ssize_t number
    for number in range(slots.count):
        if slots.at(number).is_large:
            found.append((number, slots.at(number).size_bytes))
    return found


def slot_bytes_of(bytes message_index):
    """Return the size of one slot of an index in bytes; the first eight bytes of the index are enough to tell."""
    return _words_of(message_index) * sizeof(u64)


def checksums_in(bytes message_index):
    """Return the checksums of the bodies in the slots of an index, 0 for none; None for an index without checksums."""
    cdef const u64 *at = <const u64 *>PyBytes_AS_STRING(message_index)
    cdef Py_ssize_t slot
    if _words_of(message_index) == OLD_WORDS:
        return None
    return [at[WORDS * slot + 2] & 0xFFFFFFFF for slot in range(<Py_ssize_t>(len(message_index) // (WORDS * sizeof(u64))))]


def without(bytes message_index, list needed):
    """Return the index with zeros in the slots of messages that no queue has, those that are False in ``needed``."""
    cdef Py_ssize_t size = slot_bytes_of(message_index)
    cdef bytearray left = bytearray(message_index)
    for slot, is_needed in enumerate(needed):
        if not is_needed:
            left[slot * size:(slot + 1) * size] = bytes(size)
    # The bit of the first slot that tells how long slots are stays, even if its message is not needed.
    if size == WORDS * sizeof(u64):
        left[7] |= 1 << (SUMMED_SHIFT - 56)
    return bytes(left)


cdef int _words_of(bytes message_index) except -1:
    if len(message_index) < <Py_ssize_t>sizeof(u64):
        return OLD_WORDS
    return WORDS if (<const u64 *>PyBytes_AS_STRING(message_index))[0] >> SUMMED_SHIFT & 1 else OLD_WORDS


cdef int _priority_in(u64 size) noexcept:
    return <int>(size >> PRIORITY_SHIFT & PRIORITY_BITS) ^ USUAL_PRIORITY

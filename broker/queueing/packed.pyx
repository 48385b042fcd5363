"""Packs: the messages far behind the front of a queue, in ten bytes for each message instead of two hundred.

A pack has up to PACK_ENTRIES consecutive messages of one queue and priority, none of which was given to a consumer
since the broker started. A message in several queues is one object for all of these queues, and the pack refers to the
object. Any other message is packed only if it is small, the store has the message and memory has no body: then a few
numbers are enough to make the object again. A pack is opened at the front of the queue, for a browser, for a purge or a
move, or when a message in the pack is past its deadline.

    message_id       difference from the message before, zigzag
    position         difference from the message before
    size in bytes    twice, and 1 more when a delivery-count follows
    delivery_count
    deadline         0 for none, else 1 more than: ms from the last deadline before, zigzag

All of these numbers are varints, seven bits in each byte, the lowest first.
"""

from libc.math cimport INFINITY, ceil
from libc.stdlib cimport free, malloc

from broker.queueing.message cimport AVAILABLE, QueueEntry, QueuedMessage

cdef enum:
    MOST_ENTRY_BYTES = 50

ctypedef unsigned long long u64


cdef class Pack:
    """A pack: consecutive messages of one queue and priority, in a few bytes for each.

    ``entries`` are the unpacked entries, None while the pack is closed; they are made again from ``data`` and
    ``shared``. ``viewers`` counts the browsers showing the pack. Once a pack ``is_spent``, its entries wait in the
    queue's delivery order singly, and the pack is not used any more.
    """

    cdef list open(self):
        if self.entries is None:
            self.entries = self.peek()
        return self.entries

    cdef list peek(self):
        """Return the entries of the pack; for a closed pack, which stays closed, they are made for the caller alone."""
        cdef list found = self.entries
        if found is None:
            found = _unpack(self)
        return found

    cdef bint close(self) except -1:
        """Free the entries of an open pack, unless a browser shows the pack or an entry could not be made again.

        Return False if the entries stay.
        """
        cdef QueueEntry entry
        cdef int number
        if self.is_spent or self.entries is None:
            return True
        if self.viewers:
            return False
        for number, entry in enumerate(self.entries):
            if not _is_plain(entry) or not (self._has_kept(number) or _can_be_made_again(entry.message)):
                return False
        self.entries = None
        return True

    cdef bint _has_kept(self, int number) noexcept:
        return self.shared is not None and number < len(self.shared) and self.shared[number] is not None

    cdef int drop_archived(self) except -1:
        """Drop the archived entries of an open pack: pack its waiting entries anew, and close the pack if possible."""
        cdef Packer packer = Packer(self.priority)
        cdef Pack left
        cdef QueueEntry entry
        cdef list every = self.entries
        self.entries = []
        for entry in every:
            if entry.standing == AVAILABLE:
                self.entries.append(entry)
                packer.add_entry(entry)
        left = packer.take()
        self.data, self.count, self.shared = left.data, left.count, left.shared
        self.earliest_s, self.latest_s = left.earliest_s, left.latest_s
        self.close()
        return 0

    cdef bint has_available(self, double now) except -1:
        cdef QueueEntry entry
        if self.entries is None:
            return self.count > 0 and self.latest_s > now
        for entry in self.entries:
            if entry.standing == AVAILABLE and not entry.is_past(now):
                return True
        return False


cdef class Packer:
    """Makes packs of one priority, one after the other, from the messages that are added to it."""

    def __cinit__(self, unsigned char priority):
        self.priority = priority
        self.buffer = <unsigned char *>malloc(PACK_ENTRIES * MOST_ENTRY_BYTES)
        if self.buffer is NULL:
            raise MemoryError
        self._begin()

    def __dealloc__(self):
        free(self.buffer)

    cdef int _begin(self) except -1:
        self.at = self.buffer
        self.count = 0
        self.first_position = self.last_position = self.last_id = self.last_ms = 0
        self.earliest_s, self.latest_s = INFINITY, -INFINITY
        self.shared = None
        return 0

    cdef int add_entry(self, QueueEntry entry) except -1:
        cdef QueuedMessage message = entry.message
        self.add(message.message_id, entry.position, message.size_bytes, message.deadline_s, entry.delivery_count)
        if message.references > 1:
            if self.shared is None:
                self.shared = []
            self.shared.extend([None] * (self.count - 1 - len(self.shared)))
            self.shared.append(message)
        return 0

    cdef int add(self, long long message_id, long long position, size_t size_bytes, double deadline_s,
                 unsigned int delivery_count) except -1:
        """Add a message to the pack; the caller adds at most PACK_ENTRIES messages, by rising positions."""
        cdef long long at_ms
        if self.count == 0:
            self.first_position = position
        self.at = _put(self.at, _zigzag(message_id - self.last_id))
        self.at = _put(self.at, <u64>(position - self.last_position))
        self.at = _put(self.at, <u64>size_bytes << 1 | (delivery_count > 0))
        if delivery_count:
            self.at = _put(self.at, delivery_count)
        if deadline_s == INFINITY:
            self.at = _put(self.at, 0)
        else:
            # The deadline is rounded up to milliseconds: a message must not expire early.
            at_ms = <long long>ceil(deadline_s * 1000)
            self.at = _put(self.at, _zigzag(at_ms - self.last_ms) + 1)
            self.last_ms = at_ms
        self.last_id, self.last_position = message_id, position
        self.earliest_s, self.latest_s = min(self.earliest_s, deadline_s), max(self.latest_s, deadline_s)
        self.count += 1
        return 0

    cdef Pack take(self):
        """Return a closed pack of the messages added, and begin the next pack."""
        cdef Pack pack = Pack.__new__(Pack)
        pack.data = (<char *>self.buffer)[:self.at - self.buffer]
        pack.count, pack.priority = self.count, self.priority
        pack.first_position, pack.last_position = self.first_position, self.last_position
        pack.earliest_s, pack.latest_s = self.earliest_s, self.latest_s
        pack.shared = None if self.shared is None else tuple(self.shared)
        self._begin()
        return pack


cdef bint can_be_packed(QueueEntry entry) noexcept:
    return _is_plain(entry) and (entry.message.references > 1 or _can_be_made_again(entry.message))


cdef bint _is_plain(QueueEntry entry) noexcept:
    return entry.standing == AVAILABLE and entry.cause is None and entry.shunned_by is None


cdef bint _can_be_made_again(QueuedMessage message) noexcept:
    return message.is_stored and not message.is_large and message.references == 1 and message.body is None


cdef list _unpack(Pack pack):
    cdef const unsigned char *at = pack.data
    cdef list found = []
    cdef QueuedMessage message
    cdef QueueEntry entry
    cdef long long message_id = 0, position = 0, at_ms = 0
    cdef u64 size_bytes, deadline
    cdef int number
    for number in range(pack.count):
        entry = QueueEntry.__new__(QueueEntry)
        message_id += _unzigzag(_next(&at))
        position += <long long>_next(&at)
        size_bytes = _next(&at)
        entry.delivery_count = <unsigned int>_next(&at) if size_bytes & 1 else 0
        deadline = _next(&at)
        if deadline:
            at_ms += _unzigzag(deadline - 1)
        if pack._has_kept(number):
            message = pack.shared[number]
        else:
            message = QueuedMessage.__new__(QueuedMessage)
            message.message_id, message.size_bytes, message.priority = message_id, size_bytes >> 1, pack.priority
            message.is_stored = True
            message.deadline_s = at_ms / 1000.0 if deadline else INFINITY
            message.references = 1
        entry.message, entry.position, entry.standing = message, position, AVAILABLE
        found.append(entry)
    return found


cdef u64 _zigzag(long long number) noexcept:
    return (<u64>number << 1) ^ <u64>(number >> 63)


cdef long long _unzigzag(u64 number) noexcept:
    return <long long>(number >> 1) ^ -<long long>(number & 1)


cdef unsigned char *_put(unsigned char *at, u64 number) noexcept:
    while number >= 0x80:
        at[0] = <unsigned char>(number | 0x80)
        number >>= 7
        at += 1
    at[0] = <unsigned char>number
    return at + 1


cdef u64 _next(const unsigned char **at) noexcept:
    cdef u64 number = 0
    cdef int shift = 0
    while at[0][0] & 0x80:
        number |= <u64>(at[0][0] & 0x7F) << shift
        shift += 7
        at[0] += 1
    number |= <u64>at[0][0] << shift
    at[0] += 1
    return number

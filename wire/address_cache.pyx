"""A cache by address, for links whose messages name their addresses themselves: an entry costs some 160 bytes.

The cache has two generations. An entry that is used moves into the young generation; when the young generation is full
or grows old, it becomes the old generation, and the old generation before it is forgotten. So addresses in use stay,
up to twice ``most``, and an address that is no longer used costs nothing after two calls of ``age``.
"""

MOST_ADDRESSES = 1 << 17
LONGEST_BYTES = 1024
IDLE_S = 30.0

cdef Py_ssize_t _LONGEST_BYTES = LONGEST_BYTES


cdef class AddressCache:
    """Maps the bytes of `to`, as they stand in messages, to a value.

    ``on_filled()`` is called when an empty cache gets an entry: its owner then calls ``age`` every ``IDLE_S`` seconds,
    until ``age`` returns False. An address of more than ``LONGEST_BYTES`` bytes is not kept.
    """

    def __init__(self, on_filled, Py_ssize_t most=MOST_ADDRESSES):
        self.on_filled = on_filled
        self.most = most
        self.young, self.old = {}, {}

    cdef object get_now(self, bytes to):
        """Return the cached value of the address ``to``, which thereby counts as used; None if the cache has none."""
        found = self.young.get(to)
        if found is None and self.old:
            found = self.old.get(to)
            if found is not None:
                self._keep(to, found)
        return found

    cdef int put_now(self, bytes to, value) except -1:
        if len(to) > _LONGEST_BYTES:
            return 0
        if not self.young and not self.old:
            self.on_filled()
        return self._keep(to, value)

    cdef int _keep(self, bytes to, value) except -1:
        if len(self.young) >= self.most:
            self.old, self.young = self.young, {}
        self.young[to] = value
        return 0

    def get(self, to):
        return self.get_now(to)

    def put(self, to, value):
        self.put_now(to, value)

    def discard(self, to):
        """Forget the value of the address ``to``; no effect if the cache has none."""
        self.young.pop(to, None)
        self.old.pop(to, None)

    def clear(self):
        """Forget all entries; owners call this when the values of addresses have changed."""
        self.young, self.old = {}, {}

    def age(self):
        """Forget the entries that were not used since the call before; return whether entries are left."""
        self.old, self.young = self.young, {}
        return bool(self.old)

    def __len__(self):
        return len(self.young) + sum([to not in self.young for to in self.old])

"""How much of what was not settled yet does this node keep: to offer it again, or to keep it out of others' way?"""


cdef class Copies:
    """In bytes, of all addresses of a node."""

    def __init__(self, size_t limit_bytes):
        self.limit_bytes = limit_bytes

    cdef bint take(self, size_t size) noexcept:
        """False when there is no room for it."""
        if self.used_bytes + size > self.limit_bytes:
            return False
        self.used_bytes += size
        return True

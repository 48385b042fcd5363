"""The budget of a node for copies of unsettled deliveries, kept to be offered again or to clear a session's window."""


cdef class Copies:
    """Bytes of copies, over all addresses of a node."""

    def __init__(self, size_t limit_bytes):
        self.limit_bytes = limit_bytes

    cdef bint take(self, size_t size) noexcept:
        """Reserve ``size`` bytes; False when there is no room."""
        if self.used_bytes + size > self.limit_bytes:
            return False
        self.used_bytes += size
        return True

"""A node's memory budget for messages of unsettled deliveries.

Messages are kept to be offered to other takers, or because they were read to open a session's window.
"""


cdef class Copies:
    """The budget: the bytes of all copies of messages that a node keeps, over all addresses, and the limit."""

    def __init__(self, size_t limit_bytes):
        self.limit_bytes = limit_bytes

    cdef bint take(self, size_t size) noexcept:
        """Count ``size`` bytes more as used; False, with nothing counted, if that would exceed the limit."""
        if self.used_bytes + size > self.limit_bytes:
            return False
        self.used_bytes += size
        return True

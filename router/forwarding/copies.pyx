"""A node's memory budget for messages that are kept: to be offered to other takers, or until a taker has credit.

The latter are read out of the engine, to open their session's window.
"""


cdef class Copies:
    """The budget for copies of messages that a node keeps: the bytes of all copies, over all addresses, and a limit."""

    def __init__(self, size_t limit_bytes):
        self.limit_bytes = limit_bytes

    cdef bint take(self, size_t size) noexcept:
        """Count ``size`` bytes more as used; False, with nothing counted, if that would exceed the limit."""
        if self.used_bytes + size > self.limit_bytes:
            return False
        self.used_bytes += size
        return True

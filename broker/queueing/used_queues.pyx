"""The queues to which messages came lately over links without an address, by the address in the message.

To find a queue by its address costs a look at the topology, and at the limits of the user. A queue that is not used for
a while is forgotten here, and costs nothing more.
"""

from libc.math cimport INFINITY

from broker.queueing.held_queue cimport HeldQueue
from wire.address_cache cimport AddressCache

from wire.address_cache import IDLE_S


cdef class UsedQueues:
    """Maps the bytes of an address, as they stand in a message's `to`, to the durable queue of the address."""

    def __init__(self):
        self.cache = AddressCache(self._on_filled)
        self.due_s = INFINITY

    cdef HeldQueue queue_at(self, bytes address, double now):
        """Return the queue; None if it is not known, deleted, or if its use has to be noted again."""
        cdef HeldQueue held = self.cache.get_now(address)
        return None if held is None or held.is_deleted or now >= held.use_due_s else held

    def note(self, address, HeldQueue held not None, double now):
        """Remember that messages to ``address`` go to the queue ``held``."""
        self.now = now
        self.cache.put_now(address, held)

    def _on_filled(self):
        self.due_s = self.now + IDLE_S

    def next_deadline(self):
        return None if self.due_s == INFINITY else self.due_s

    def on_time(self, double now):
        """Forget the queues to which no such message came for IDLE_S seconds, or for up to twice as long."""
        if now >= self.due_s:
            self.due_s = now + IDLE_S if self.cache.age() else INFINITY

    def __len__(self):
        return len(self.cache)

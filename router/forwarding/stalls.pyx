"""A sender without an address has one credit for all addresses: one that takes nothing must not use it up.

What waits for an address of which nothing was taken for ``stall_timeout_s`` is RELEASED, but for a share of the credit that
all such addresses have together, and so is what still comes for it. One that takes something within that time holds its
sender back as it should. What came settled waits: nobody would hear that it was given back.
"""

from router.forwarding.address cimport AddressGroup

cdef enum:
    # Of the sender's credit a quarter waits for what stands still.
    SHARE = 4
    # Looks within the time after which an address stands still.
    LOOKS = 4


cdef class Part(Inlet):
    cdef int give_back(self, int most) except -1:
        """Release what waits, but for ``most`` and what came settled; how many."""
        raise NotImplementedError


cdef class Stalls:
    """Of one sender. ``inlets``: all it has, by group, kept by the sender.

    ``seen``: how many deliveries those of which something waits had passed on, and since when that is so.
    ``stalled``: the same count of those that stand still.
    """

    def __cinit__(self, int capacity, dict inlets):
        self.capacity, self.inlets = capacity, inlets
        self.seen, self.stalled = {}, {}

    cdef int on_waiting(self, Part inlet) except -1:
        """Something waits that nobody has room for."""
        if self.timer is None:
            self._look_again(inlet.group)
        return 0

    cdef bint has_enough(self, Part inlet) except -1:
        """No more is to wait for this address."""
        if not self.stalled or self.stalled.get(inlet) != inlet.deliveries_in:
            return False
        return inlet.waiting_now() >= self._share()

    cdef int stop(self) except -1:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        return 0

    def _look_again(self, AddressGroup group):
        self.timer = group.timers.after(group.settings.stall_timeout_s / LOOKS, lambda: self._look(group))

    def _look(self, AddressGroup group):
        cdef Part inlet
        cdef double now = group.timers.now
        cdef double patience_s = group.settings.stall_timeout_s
        self.timer = None
        seen, self.seen, self.stalled = self.seen, {}, {}
        for inlet in self.inlets.values():
            if not inlet.waiting_now() or inlet.moving is not None:
                continue
            count, since_s = seen.get(inlet, (-1, now))
            self.seen[inlet] = (count, since_s) if count == inlet.deliveries_in else (inlet.deliveries_in, now)
            if now - self.seen[inlet][1] >= patience_s:
                self.stalled[inlet] = inlet.deliveries_in
        for inlet in list(self.stalled):
            (<AddressGroup>inlet.group).released += inlet.give_back(self._share())
            self.stalled[inlet] = inlet.deliveries_in
            self.seen[inlet] = (inlet.deliveries_in, self.seen[inlet][1])
        # What was given back may have let others in, who began it already, or ended the sender.
        if self.seen and self.inlets and self.timer is None:
            self._look_again(group)

    cdef int _share(self) except -1:
        """With nothing that waits, credit that comes would go unnoticed."""
        return max(1, self.capacity // (SHARE * max(1, <int>len(self.stalled))))

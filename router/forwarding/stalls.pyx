"""Keep an address that stands still from using up the credit of an anonymous sender, which has one credit for all.

Deliveries for an address that took none for ``stall_timeout_s`` are RELEASED, waiting and new ones, but for a share
of the credit that all such addresses have together. A slower address, which takes a delivery within the timeout,
holds the sender back as intended. Pre-settled deliveries wait: no sender would learn of their return.
"""

from router.forwarding.address cimport AddressGroup

cdef enum:
    # A quarter of the sender's credit may wait for addresses that stand still.
    SHARE = 4
    # Looks within the timeout after which an address stands still.
    LOOKS = 4


cdef class SharedCreditInlet(Inlet):
    cdef int give_back(self, int most) except -1:
        """Release waiting deliveries, but for ``most`` and the pre-settled ones; return their number."""
        raise NotImplementedError


cdef class Stalls:
    """The stalled addresses of one sender. ``inlets``: group -> the sender's inlet, kept by the sender.

    ``seen``: inlet with waiting deliveries -> the number of deliveries passed on, and the time of its last change.
    ``stalled``: inlet that stands still -> the same number.
    """

    def __cinit__(self, int capacity, dict inlets):
        self.capacity, self.inlets = capacity, inlets
        self.seen, self.stalled = {}, {}

    cdef int on_waiting(self, SharedCreditInlet inlet) except -1:
        """A delivery waits because no taker has room for it."""
        if self.timer is None:
            self._look_again(inlet.group)
        return 0

    cdef bint has_enough(self, SharedCreditInlet inlet) except -1:
        """True if no more deliveries are to wait for this address."""
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
        cdef SharedCreditInlet inlet
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
        # Giving deliveries back may have let others in, which started the timer already, or ended the sender.
        if self.seen and self.inlets and self.timer is None:
            self._look_again(group)

    cdef int _share(self) except -1:
        """At least one: without a waiting delivery, new credit would go unnoticed."""
        return max(1, self.capacity // (SHARE * max(1, <int>len(self.stalled))))

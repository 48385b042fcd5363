"""Keep an address that stands still from using up the credit of an anonymous producer, whose one link and credit serve
all addresses.

An address stands still if deliveries wait for it and it took none for ``stall_timeout_s``. Its waiting and new
deliveries are RELEASED, apart from a few: all such addresses together may use a quarter of the credit. A slow address,
which takes a delivery within the timeout, holds the producer back as intended. Pre-settled deliveries keep waiting,
since the producer would not learn of their release.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.held_inlet cimport HeldInlet

cdef enum:
    # All deliveries together that wait for addresses that stand still may use one in SHARE of the producer's credits.
    SHARE = 4
    # How often the timer looks at the addresses within the timeout after which an address counts as standing still.
    LOOKS = 4


cdef class SharedCreditInlet(HeldInlet):
    cdef int give_back(self, int most) except -1:
        """Release waiting deliveries of the inlet, but not ``most`` of them and no pre-settled one; return how many."""
        raise NotImplementedError

    cdef int stuck_now(self) noexcept:
        """Return the number of deliveries that wait for the address, here or at its full queue."""
        return self.waiting_now()

    cdef unsigned long long progress_now(self) noexcept:
        """Return the number of the inlet's deliveries that went on."""
        return self.deliveries_in


cdef class Stalls:
    """The addresses to which an anonymous producer sends, and which take no deliveries.

    ``inlets``: group of an address -> the producer's inlet in the group, a dict of the producer. ``seen``: inlet with
    waiting deliveries -> the number of its deliveries that were passed on, and the time at which the number changed
    last. ``stalled``: the inlet of an address that stands still -> how many of the inlet's deliveries went on.
    """

    def __cinit__(self, int capacity, dict inlets):
        self.capacity, self.inlets = capacity, inlets
        self.seen, self.stalled = {}, {}

    cdef int on_waiting(self, SharedCreditInlet inlet) except -1:
        """Start the timer that looks for addresses that stand still; called when a delivery waits for a taker."""
        if self.timer is None:
            self._look_again(inlet.group)
        return 0

    cdef bint has_enough(self, SharedCreditInlet inlet) except -1:
        """True if the inlet's address stands still and enough deliveries wait for it: the caller releases a new one."""
        if not self.stalled or self.stalled.get(inlet) != inlet.progress_now():
            return False
        return inlet.stuck_now() >= self._share()

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
            if not inlet.stuck_now() or inlet.moving is not None:
                continue
            count, since_s = seen.get(inlet, (-1, now))
            self.seen[inlet] = (count, since_s) if count == inlet.progress_now() else (inlet.progress_now(), now)
            if now - self.seen[inlet][1] >= patience_s:
                self.stalled[inlet] = inlet.progress_now()
        for inlet in list(self.stalled):
            (<AddressGroup>inlet.group).released += inlet.give_back(self._share())
            self.stalled[inlet] = inlet.progress_now()
            self.seen[inlet] = (inlet.progress_now(), self.seen[inlet][1])
        # Releasing deliveries may have let others in, which started the timer already, or ended the producer's link.
        if self.seen and self.inlets and self.timer is None:
            self._look_again(group)

    cdef int _share(self) except -1:
        """Return how many deliveries of the producer may wait for each address that stands still.

        At least one may: a waiting delivery goes on when the address takes deliveries again, and so ends the stall.
        """
        return max(1, self.capacity // (SHARE * max(1, <int>len(self.stalled))))

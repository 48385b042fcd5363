"""Deal with a sharded queue's messages that are too large for all consumers at this router.

A too large message goes back to its broker undeliverable-here: the broker gives the message to another router's link,
and counts no attempt. If a consumer has credit and is idle ``path_wait_s`` later, all waiting messages are too large
for the consumer, whose link is ended with the reason. The link from the broker is made anew when idle after
``stall_timeout_s``, since a broker never sends a message again over the link that returned it, and consumers of larger
messages may have come.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Inlet, Taker

from wire.errors import LinkError


cdef class TooLarge:
    """The consumers of one group for which a message was too large, and the links from brokers to make anew."""

    def __init__(self, AddressGroup group, timers, settings):
        self.group, self.timers, self.settings = group, timers, settings
        self.small, self.renewals = {}, {}

    cdef int note(self, Inlet inlet, size_t size) except -1:
        """Start timers: to end links of consumers here for which ``size`` is too large, and to make ``inlet`` anew.

        A consumer's link is ended once idle although it has credit; ``inlet`` is made anew once idle, unless it is from
        a router. Called when a message of at least ``size`` bytes, too large for the consumers here, went back over
        ``inlet``.
        """
        cdef Taker taker
        for taker in self.group.takers:
            if taker.cost == 0 and not taker.edge and taker.max_message_bytes and taker.max_message_bytes < size:
                self.small.setdefault(taker, size)
        if self.small and self.timer is None:
            self.timer = self.timers.after(self.settings.path_wait_s, self._look)
        if not inlet.is_from_node() and inlet not in self.renewals:
            self._renew_later(inlet)
        return 0

    cdef int renew_soon(self, Inlet inlet) except -1:
        """Make the broker's link of ``inlet`` anew after ``path_wait_s``, or later, once the link is idle.

        Called when a consumer came, which may want messages that went back because no other consumer wanted them.
        """
        if inlet not in self.renewals:
            self.renewals[inlet] = self.timers.after(self.settings.path_wait_s, lambda: self._renew(inlet))
        return 0

    def _look(self):
        """End the links of consumers for which a message was too large, and that are idle although they have credit.

        A consumer is looked at again later while it has unsettled deliveries or no credit, or a delivery waits at this
        router.
        """
        cdef Taker taker
        self.timer = None
        small, self.small = self.small, {}
        for taker, size in small.items():
            if taker not in self.group.takers or taker.link.is_gone:
                continue
            if taker.unsettled_count or taker.credit_count <= 0 or self._has_queued():
                self.small[taker] = size
            else:
                self._tell(taker, size)
        if self.small:
            self.timer = self.timers.after(self.settings.path_wait_s, self._look)

    cdef bint _has_queued(self) noexcept:
        cdef Inlet inlet
        for inlet in self.group.inlets:
            if not inlet.link.is_gone and inlet.has_queued():
                return True
        return False

    cdef int _tell(self, Taker taker, size_t size) except -1:
        cdef object error = LinkError(
            "amqp:link:message-size-exceeded",
            f"all waiting messages of {self.group.address.name!r} are too large for this link: max-message-size is "
            f"{taker.max_message_bytes:,}, and a message has {size:,} bytes or more",
        )
        taker.link.close(error)
        taker.on_left(True, error)
        taker.link.owner = None
        return 0

    def _renew_later(self, Inlet inlet):
        self.renewals[inlet] = self.timers.after(self.settings.stall_timeout_s, lambda: self._renew(inlet))

    def _renew(self, Inlet inlet):
        del self.renewals[inlet]
        if inlet not in self.group.inlets or inlet.link.is_gone:
            return
        if inlet.unsettled_count or inlet.has_queued():
            self._renew_later(inlet)
        else:
            inlet.on_left(True, None)

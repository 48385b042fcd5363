"""The settings of a router's forwarding, and the frozen view of an address that operators see."""

from __future__ import annotations

from dataclasses import dataclass

_RETRANSMIT_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    """The settings of a router's forwarding: most credit of a link, waiting times in seconds, memory for copies."""

    link_capacity: int = 1000
    path_wait_s: float = 2.0
    """How long deliveries without a path or taker wait at a router before they are RELEASED."""
    stall_timeout_s: float = 10.0
    """How long a multicast's deliveries wait for a taker that stands still before they go out without this taker."""
    copies_bytes: int = 64 << 20
    """Most bytes of messages that a router keeps, over all addresses, to offer unsettled deliveries to other takers."""

    def hold_s(self, *, is_retransmitted: bool) -> float:
        """Return for how many seconds deliveries without a taker are held before they are RELEASED.

        For an address with ``retransmit`` the time is long enough to find a path around a lost router.
        """
        return max(self.path_wait_s, _RETRANSMIT_WAIT_S) if is_retransmitted else self.path_wait_s


@dataclass(frozen=True, slots=True)
class AddressSnapshot:
    """A frozen view of one address and phase at a router, for `amqpmesh status`; counts are deliveries.

    ``released``: given back to the sender, mostly for lack of a taker. ``retried``: offered to another taker, or sent
    again. ``copies_missed``: copies of a multicast that a taker missed, since it stalled or the message was too large.
    """

    address: str
    phase: int
    treatment: str
    priority: int
    inlets: int
    takers: int
    circuits: int
    credit: int
    unsettled: int
    deliveries_in: int
    deliveries_out: int
    released: int
    retried: int
    copies_missed: int
    is_falling_back: bool = False

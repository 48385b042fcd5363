"""What an operator may set of forwarding, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass

_RETRANSMIT_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    link_capacity: int = 1000
    path_wait_s: float = 2.0
    """How long deliveries are held for a path or taker before they are RELEASED."""
    stall_timeout_s: float = 10.0
    """How long a multicast waits for a taker that stands still."""
    copies_bytes: int = 64 << 20
    """What may be kept, over all addresses, of deliveries without an outcome, to offer them to another taker."""

    def hold_s(self, *, is_retransmitted: bool) -> float:
        """Where producers are to see no failure, it is long enough for the place of a lost router to be taken."""
        return max(self.path_wait_s, _RETRANSMIT_WAIT_S) if is_retransmitted else self.path_wait_s


@dataclass(frozen=True, slots=True)
class AddressSnapshot:
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

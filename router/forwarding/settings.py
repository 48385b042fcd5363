"""The settings of forwarding for operators, and the snapshot of an address."""

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
    """Bytes of copies kept, over all addresses, of deliveries without an outcome, to offer them to another taker."""

    def hold_s(self, *, is_retransmitted: bool) -> float:
        """Return how long deliveries are held; with retransmission long enough for a replacement of a lost router."""
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

"""What an operator may set of forwarding, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    link_capacity: int = 1000
    path_wait_s: float = 2.0
    """How long deliveries are held for a path or taker before they are RELEASED."""
    stall_timeout_s: float = 10.0
    """How long a multicast waits for a taker that stands still."""
    copies_bytes: int = 64 << 20
    """What may be kept, over all addresses, of deliveries without an outcome, to offer them to another taker."""


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

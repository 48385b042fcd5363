from typing import Protocol

from router.forwarding.copies import Copies
from router.forwarding.ends import Group, Inlet, Taker
from router.forwarding.settings import AddressSnapshot, ForwardingSettings
from router.timers import Timers
from wire.errors import AmqpError

class GroupOwner(Protocol):
    def on_group_changed(self, group: AddressGroup) -> None: ...
    def on_end_lost(self, group: AddressGroup, end: Inlet | Taker, error: AmqpError | None) -> None: ...
    def on_better_way(self, group: AddressGroup, taker: Taker) -> None:
        """A circuit that is no taker yet is up."""
    def open_stream(self, group: AddressGroup, taker: Taker, inlet: Inlet) -> Taker | None:
        """For a large delivery of an anycast, in place of one that all share; None until it can take."""
    def is_complete(self, group: AddressGroup, is_circuit: bool) -> bool:
        """Whoever may have messages of a sharded queue sends here by now; for a circuit, whoever is here."""
    def open_branches(self, group: AddressGroup) -> None:
        """Those of a multicast that leave this router, now: they have no credit at first."""
    def open_streams(self, group: AddressGroup, inlet: Inlet) -> list[Taker]:
        """The branches of an inlet's large deliveries of a multicast; they have no credit at first."""

class AddressGroup(Group):
    address: str
    phase: int
    priority: int
    maker: str | None
    inlets: dict[Inlet, None]
    takers: dict[Taker, None]
    released: int
    hold_s: float
    @property
    def asks_producers(self) -> bool: ...
    def __init__(
        self,
        address: str,
        phase: int,
        timers: Timers,
        settings: ForwardingSettings,
        owner: GroupOwner,
        copies: Copies,
    ) -> None: ...
    @property
    def treatment(self) -> str: ...
    def add_inlet(self, inlet: Inlet) -> None: ...
    def add_taker(self, taker: Taker) -> None: ...
    def add_stream(self, taker: Taker) -> None: ...
    def has(self, taker: Taker) -> bool: ...
    def leave_taker(self, left: Taker) -> None: ...
    def has_passed_on(self, left: Taker) -> bool:
        """Whatever it was given, settled ones too; who is behind it is asked if that is not known."""
    def give_up_order_behind(self, left: Taker) -> None:
        """Nobody is behind it any more who could see the difference."""
    def go_on(self) -> None: ...
    def on_drained(self) -> None: ...
    def forget_inlet(self, inlet: Inlet) -> None: ...
    def lose_inlet(self, inlet: Inlet, error: AmqpError | None) -> None: ...
    def give_back_to(self, edge: int) -> None: ...
    def give_up(self) -> None: ...
    def top_up(self, inlet: Inlet) -> None: ...
    def snapshot(self) -> AddressSnapshot: ...

from typing import Protocol, type_check_only

from addressing.address import Address
from recording.records import Recorder
from router.forwarding.actions import GroupActions
from router.forwarding.copies import Copies
from router.forwarding.ends import Group, Inlet, Taker
from router.forwarding.settings import AddressSnapshot, ForwardingSettings
from router.timers import Timers
from wire.errors import AmqpError

@type_check_only
class GroupOwner(Protocol):
    """The calls that a group makes at once, since the group goes on with the answer or the effect.

    Everything else is an action, which the owner takes after the input (`router.forwarding.actions`). The loss of an
    end is a call, too: before the group passes on the next delivery, the streams and branches that belong to the lost
    end have to be closed, and a fallback queue whose link was lost has to count as holding messages. Otherwise the
    delivery could go beside the lost end, or overtake messages that are back in the queue.
    """

    def on_end_lost(self, group: AddressGroup, end: Inlet | Taker, error: AmqpError | None) -> None:
        """The peer of an end left, or refused the end."""
    def open_stream(self, group: AddressGroup, taker: Taker, inlet: Inlet) -> Taker | None:
        """Return the stream (a link for large deliveries) beside the shared ``taker`` of an anycast; None until it has
        credit.
        """
    def is_taken_beside(self, group: AddressGroup, egresses: frozenset[str | None]) -> bool:
        """Tell whether other routers than ``egresses`` have takers of the group's address."""
    def is_complete(self, group: AddressGroup, is_circuit: bool) -> bool:
        """Tell whether each reachable broker of a queue on several brokers sends here; for a circuit, each connected
        broker.
        """
    def open_branches(self, group: AddressGroup) -> None:
        """Open now the branches of a multicast that leave this router; they have no credit at first."""
    def open_streams(self, group: AddressGroup, inlet: Inlet) -> list[Taker]:
        """Return the branches for large deliveries of ``inlet`` at a multicast, opened if needed; new ones have no
        credit.
        """

class AddressGroup(Group):
    address: Address
    phase: int
    priority: int
    user: str | None
    egress: str | None
    pattern: Address | None
    maker: str | None
    inlets: dict[Inlet, None]
    takers: dict[Taker, None]
    released: int
    hold_s: float
    recording: int
    @property
    def asks_producers(self) -> bool: ...
    @property
    def has_taker(self) -> bool: ...
    def __init__(
        self,
        address: Address,
        phase: int,
        timers: Timers,
        settings: ForwardingSettings,
        owner: GroupOwner,
        actions: GroupActions,
        copies: Copies,
        recorder: Recorder,
        *,
        priority: int = 4,
        record_level: str | None = None,
        user: str | None = None,
        egress: str | None = None,
        pattern: Address | None = None,
    ) -> None: ...
    @property
    def treatment(self) -> str: ...
    def add_inlet(self, inlet: Inlet) -> None: ...
    def add_taker(self, taker: Taker) -> None: ...
    def add_stream(self, taker: Taker) -> None: ...
    def has(self, taker: Taker) -> bool: ...
    def leave_taker(self, left: Taker) -> None: ...
    def has_passed_on(self, left: Taker) -> bool:
        """Tell whether the replaced circuit ``left`` has passed on all deliveries; if that is unknown, send it a
        barrier.
        """
    def give_up_order_behind(self, left: Taker) -> None:
        """Let later deliveries no longer wait for those of the replaced circuit ``left``."""
    def record_decisions(self, recording: int) -> None: ...
    def go_on(self) -> None: ...
    def on_drained(self) -> None: ...
    def forget_inlet(self, inlet: Inlet) -> None: ...
    def lose_inlet(self, inlet: Inlet, error: AmqpError | None) -> None: ...
    def give_back_to(self, edge: int) -> None: ...
    def give_up(self) -> None: ...
    def top_up(self, inlet: Inlet) -> None: ...
    def snapshot(self) -> AddressSnapshot: ...

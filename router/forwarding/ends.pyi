from collections.abc import Callable
from typing import Any

from router.forwarding.guard import Guard
from wire.core import DeliveryOwner
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink

class Group:
    def on_inlet_left(self, inlet: Inlet, closed: bool, error: AmqpError | None) -> None: ...
    def on_taker_leaving(self, taker: Taker) -> None: ...
    def on_taker_left(self, taker: Taker, closed: bool, error: AmqpError | None) -> None: ...
    def on_established(self, link: Link) -> None: ...

class Inlet(DeliveryOwner):
    link: IncomingLink
    number: int
    record_level: int
    group: Any
    limit: int
    is_circuit: bool
    is_edge: bool
    shuns: int
    ingress: str | None
    is_stream: bool
    is_lost: bool
    is_draining: bool
    unsettled_count: int
    deliveries_in: int
    def __init__(
        self, link: IncomingLink, group: Group, limit: int, *, is_circuit: bool = False, guard: Guard | None = None
    ) -> None: ...
    def on_established(self, link: Link) -> None: ...
    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...
    def expel(self, error: AmqpError) -> None: ...
    def abandon(self) -> None: ...
    def revoke(self) -> None: ...
    def hear_credit(self) -> None: ...
    def take_starved_us(self) -> int: ...
    @property
    def promised(self) -> int: ...
    @property
    def is_waiting(self) -> bool: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def progress(self) -> tuple[int, ...]: ...
    @property
    def is_moving(self) -> bool: ...

class Taker(DeliveryOwner):
    link: OutgoingLink
    number: int
    group: Any
    cost: int
    edge: int
    presettles: bool
    is_closing: bool
    @property
    def is_near(self) -> bool: ...
    @property
    def is_left(self) -> bool: ...
    upstream: Inlet | None
    is_stream: bool
    egress: str | None
    path: Any
    is_spent: bool
    behind: frozenset[str] | None
    is_deserted: bool
    had_credit: bool
    on_start: Callable[[], None] | None
    on_finish: Callable[[], None] | None
    unsettled_count: int
    deliveries_out: int
    copies_missed: int
    def take_missed(self) -> int: ...
    def __init__(
        self,
        link: OutgoingLink,
        group: Group,
        cost: int = 0,
        *,
        upstream: Inlet | None = None,
        is_stream: bool = False,
        is_broker: bool = False,
        is_for_settled: bool = False,
    ) -> None: ...
    def on_established(self, link: Link) -> None: ...
    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...
    def abandon(self) -> None: ...
    def sync_credit(self) -> None: ...
    def go_on(self) -> None: ...
    @property
    def credit(self) -> int: ...
    @property
    def can_take(self) -> bool: ...
    @property
    def is_moving(self) -> bool: ...

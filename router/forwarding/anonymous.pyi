from collections.abc import Callable
from typing import Protocol, type_check_only

from addressing.address import Address
from recording.records import Recorder
from router.forwarding.address import AddressGroup
from router.forwarding.guard import Guard
from wire.address_cache import AddressCache
from wire.core import DeliveryOwner
from wire.errors import AmqpError
from wire.link import IncomingLink, Link

@type_check_only
class Sharing(Protocol):
    """The addresses that share a circuit, as `router.distribution.circuit_sharing` knows them."""

    groups: AddressCache
    producers: dict[AnonymousProducer, None]
    def egress_of(self, name: str) -> str | None: ...

class AnonymousProducer(DeliveryOwner):
    link: IncomingLink
    capacity: int
    def __init__(
        self,
        link: IncomingLink,
        capacity: int,
        find: Callable[[str], AddressGroup],
        pattern_of: Callable[[str], Address | None],
        patterns: AddressCache,
        sharing: Sharing,
        guard: Guard,
        recorder: Recorder,
    ) -> None: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def progress(self) -> tuple[int, ...]: ...
    def top_up(self) -> None: ...
    def on_egresses_changed(self, names: set[bytes] | None) -> None: ...
    def on_established(self, link: Link) -> None: ...
    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...

from collections.abc import Callable
from typing import Any

from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet
from router.forwarding.held_inlet import HeldInlet
from wire.address_cache import AddressCache
from wire.link import IncomingLink

class LateInlet(HeldInlet):
    def __init__(self, circuit: SharedCircuit, group: AddressGroup) -> None: ...
    @property
    def is_idle(self) -> bool: ...

class SharedCircuit(Inlet):
    def __init__(self, link: IncomingLink, group: SharedArrivals, limit: int) -> None: ...

class SharedArrivals(AddressGroup):
    distribution: str
    known: AddressCache
    def __init__(
        self, *given: Any, find: Callable[[str], AddressGroup | None], distribution: str, **options: Any
    ) -> None: ...

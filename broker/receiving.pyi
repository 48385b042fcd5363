from collections.abc import Callable

from broker.commit import Commits
from broker.held_queue import HeldQueue, Producer
from broker.shelf import Shelf
from broker.stock import Stock
from wire.engine import Pointer
from wire.errors import LinkError
from wire.link import IncomingLink, Link

LINK_CREDIT: int
LARGE_BYTES: int
PIECE_BYTES: int
UNSYNCED_LIMIT_BYTES: int
PINNED_LIMIT_BYTES: int
TEMPORARY_TTL_S: float

class Gate:
    def __init__(self, commits: Commits, shelf: Shelf) -> None: ...
    def let_in(self) -> bool: ...
    def on_disk(self, *, is_low: bool) -> None: ...
    @property
    def is_short_of_memory(self) -> bool: ...

class Receiving(Producer):
    def __init__(
        self,
        link: IncomingLink,
        address: str | None,
        queues: list[HeldQueue] | None,
        targets: Callable[[str], list[HeldQueue]],
        fail: Callable[[Link, LinkError, float], None],
        stock: Stock,
        commits: Commits,
        gate: Gate,
    ) -> None: ...
    @property
    def link(self) -> IncomingLink: ...
    @property
    def address(self) -> str | None: ...
    @property
    def record_level(self) -> int: ...
    @property
    def starves(self) -> bool: ...
    @property
    def waits_for(self) -> str: ...
    def take_starved_us(self) -> int: ...
    def take_lost(self) -> dict[str, int]: ...
    def on_attached(self, now: float) -> None: ...
    def end(self) -> None: ...
    def settle_accepted(self, delivery: Pointer) -> int: ...

from collections.abc import Callable

from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import Entry
from broker.queueing.message_store import Stock

def move(
    stock: Stock,
    source: HeldQueue,
    choose: Callable[[Entry], HeldQueue | None],
    limit: int,
    before: int,
    now: float,
    is_back: bool = False,
    are_packed: bool = True,
) -> int: ...

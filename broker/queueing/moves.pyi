from collections.abc import Callable

from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore

def move(
    message_store: MessageStore,
    source: HeldQueue,
    choose: Callable[[QueueEntry], HeldQueue | None],
    limit: int,
    before: int,
    now: float,
    is_back: bool = False,
    are_packed: bool = True,
) -> int: ...

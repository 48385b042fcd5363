from collections.abc import Callable

from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore
from broker.queueing.queue import Cursor

def move(
    message_store: MessageStore,
    source: HeldQueue,
    choose: Callable[[QueueEntry], HeldQueue | None],
    limit: int,
    before: int,
    now: float,
    is_back: bool = False,
    are_packed: bool = True,
    cursor: Cursor | None = None,
) -> int: ...
def move_at(
    message_store: MessageStore,
    source: HeldQueue,
    choose: Callable[[QueueEntry], HeldQueue | None],
    positions: list[int],
    now: float,
    is_back: bool = False,
) -> list[int]: ...

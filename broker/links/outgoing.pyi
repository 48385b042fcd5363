from collections.abc import Callable

from broker.queueing.body_cache import BodyCache
from broker.queueing.commit import Commits
from broker.queueing.held_queue import HeldQueue, QueueTaker
from broker.queueing.message_store import MessageStore
from wire.link import OutgoingLink

class BrokerSender(QueueTaker):
    def __init__(
        self,
        link: OutgoingLink,
        held: HeldQueue,
        message_store: MessageStore,
        body_cache: BodyCache,
        commits: Commits,
        on_too_large: Callable[[OutgoingLink, int, float], None],
        *,
        is_browser: bool,
    ) -> None: ...
    @property
    def link(self) -> OutgoingLink: ...
    @property
    def address(self) -> str: ...
    @property
    def record_level(self) -> int: ...
    @property
    def credit(self) -> int: ...
    @property
    def kept_count(self) -> int: ...
    @property
    def moved_count(self) -> int: ...
    def rest(self) -> None: ...
    def on_attached(self, now: float) -> None: ...
    def end(self, now: float, *, is_orderly: bool = False) -> None: ...

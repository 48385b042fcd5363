from collections.abc import Callable

from router.timers import RetryDelay
from wire.errors import LinkError
from wire.link import IncomingLink

class Guard:
    def __init__(
        self,
        link: IncomingLink,
        max_message_bytes: int,
        tell: Callable[[LinkError], None],
        patience: RetryDelay | None = None,
    ) -> None: ...
    def offence(self) -> LinkError | None: ...

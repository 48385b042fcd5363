from collections.abc import Callable

from recording.records import Recorder
from router.forwarding.copies import Copies
from router.forwarding.ends import Group, Inlet, Taker
from router.forwarding.guard import Guard
from router.timers import RetryDelay
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink

class Relay(Group):
    inlet: Inlet
    taker: Taker
    def __init__(
        self,
        on_left: Callable[[Link, bool, AmqpError | None], None],
        established: Callable[[Link], None],
        recorder: Recorder,
        patience: RetryDelay | None = None,
        *,
        is_transit: bool = False,
        is_of_queue: bool = False,
        copies: Copies | None = None,
        priority: int = 4,
    ) -> None: ...
    def stitch(self, incoming: IncomingLink, outgoing: OutgoingLink, guard: Guard | None = None) -> None: ...
    def replace(self, link: IncomingLink | OutgoingLink) -> None: ...

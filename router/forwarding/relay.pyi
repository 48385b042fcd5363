from collections.abc import Callable

from recording.records import Recorder
from router.forwarding.copies import Copies
from router.forwarding.ends import Group, Inlet, Taker
from router.forwarding.guard import Guard
from router.timers import Patience
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink

class Relay(Group):
    inlet: Inlet
    taker: Taker
    def __init__(
        self,
        incoming: IncomingLink,
        outgoing: OutgoingLink,
        on_left: Callable[[Link, bool, AmqpError | None], None],
        established: Callable[[Link], None],
        recorder: Recorder,
        guard: Guard | None = None,
        patience: Patience | None = None,
        *,
        is_transit: bool = False,
        is_of_queue: bool = False,
        copies: Copies | None = None,
        priority: int = 4,
    ) -> None: ...
    def replace(self, link: IncomingLink | OutgoingLink) -> None: ...

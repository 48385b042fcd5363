from typing import Protocol, type_check_only

from addressing.address import Address
from recording.records import Recorder
from router.forwarding.actions import GroupActions
from router.forwarding.address import GroupOwner
from router.forwarding.anycast import Anycast
from router.forwarding.copies import Copies
from router.forwarding.ends import Inlet, Taker
from router.forwarding.settings import ForwardingSettings
from router.timers import Timers

@type_check_only
class Feeder(Protocol):
    """The interface of the object that owns a feed, the inlet by which a fallback queue's messages come back.

    The group calls at once. So the queue counts as holding messages before the group passes on a delivery of the feed,
    and a drain of the feed ends before the group looks at the feed's credit.
    """

    holds: bool

    def on_feeding(self) -> None: ...
    def on_flow(self) -> None: ...

class AnycastWithFallback(Anycast):
    fallback: Taker | None
    is_falling_back: bool
    is_holding: bool
    feeds: dict[Inlet, Feeder]
    def __init__(
        self,
        address: Address,
        phase: int,
        timers: Timers,
        settings: ForwardingSettings,
        owner: GroupOwner,
        actions: GroupActions,
        copies: Copies,
        recorder: Recorder,
        *,
        closest: bool = False,
        spills: bool = False,
        is_retransmitted: bool = False,
        priority: int = 4,
        record_level: str | None = None,
    ) -> None: ...
    @property
    def has_producer(self) -> bool: ...
    def fall_back(self, is_falling_back: bool, is_holding: bool, has_queue: bool) -> None: ...
    def set_fallback(self, taker: Taker, is_closing: bool) -> None: ...
    def call_home(self) -> None: ...
    def add_feed(self, inlet: Inlet, feeder: Feeder) -> None: ...
    def give_back(self, inlet: Inlet) -> None: ...

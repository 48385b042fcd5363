from addressing.address import Address
from recording.records import Recorder
from router.forwarding.actions import GroupActions
from router.forwarding.address import AddressGroup, GroupOwner
from router.forwarding.copies import Copies
from router.forwarding.settings import ForwardingSettings
from router.timers import Timers

class Anycast(AddressGroup):
    is_closest: bool
    is_strict: bool
    is_retransmitted: bool
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

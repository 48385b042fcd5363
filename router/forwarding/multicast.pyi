from collections.abc import Callable

from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker

class Multicast(AddressGroup):
    open_streams: Callable[[Inlet], list[Taker]]

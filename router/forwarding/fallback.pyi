from collections.abc import Callable
from typing import Protocol, type_check_only

from router.forwarding.anycast import Anycast
from router.forwarding.ends import Inlet, Taker

@type_check_only
class Feeder(Protocol):
    """Owner of the messages that a feed brings."""

    holds: bool

    def on_feeding(self) -> None: ...
    def on_flow(self) -> None: ...

class AnycastWithFallback(Anycast):
    fallback: Taker | None
    is_falling_back: bool
    is_holding: bool
    feeds: dict[Inlet, Feeder]
    on_despair: Callable[[], bool]
    @property
    def has_producer(self) -> bool: ...
    def fall_back(self, is_falling_back: bool, is_holding: bool) -> None: ...
    def set_fallback(self, taker: Taker, is_closing: bool) -> None: ...
    def call_home(self) -> None: ...
    def add_feed(self, inlet: Inlet, feeder: Feeder) -> None: ...
    def give_back(self, inlet: Inlet) -> None: ...

from broker.commit import Commits
from broker.held_queue import HeldQueue, Taker
from broker.shelf import Shelf
from broker.stock import Stock
from wire.link import OutgoingLink

class Sending(Taker):
    def __init__(
        self, link: OutgoingLink, held: HeldQueue, stock: Stock, shelf: Shelf, commits: Commits, *, is_browser: bool
    ) -> None: ...
    @property
    def link(self) -> OutgoingLink: ...
    def on_attached(self, now: float) -> None: ...
    def end(self, now: float) -> None: ...

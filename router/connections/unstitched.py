"""The owner of links that are not stitched (tied to another link by a relay), or not yet: ignores all calls."""

from __future__ import annotations

from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import Link


class UnstitchedOwner:
    """The base class for the owner of a link without deliveries; a sub-class handles the calls that it needs."""

    def on_delivery(self, link: Link, delivery: Pointer) -> None: ...

    def on_disposition(self, link: Link, delivery: Pointer) -> None: ...

    def on_flow(self, link: Link) -> None: ...

    def on_established(self, link: Link) -> None: ...

    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...

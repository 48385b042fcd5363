"""An owner for links that are not stitched (tied to another link by a relay), or not yet: ignores their events."""

from __future__ import annotations

from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import Link


class UnstitchedOwner:
    """Base class for the owner of a link that no relay or group has: does nothing at any event of the link.

    A subclass handles the events that matter to it.
    """

    def on_delivery(self, link: Link, delivery: Pointer) -> None: ...

    def on_disposition(self, link: Link, delivery: Pointer) -> None: ...

    def on_flow(self, link: Link) -> None: ...

    def on_established(self, link: Link) -> None: ...

    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...

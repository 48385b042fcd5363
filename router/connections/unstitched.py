"""Owner of links that are not stitched, or not yet: ignores all calls about deliveries."""

from __future__ import annotations

from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import Link


class UnstitchedOwner:
    """Owner of a link that has no deliveries, or none yet."""

    def on_delivery(self, link: Link, delivery: Pointer) -> None: ...

    def on_disposition(self, link: Link, delivery: Pointer) -> None: ...

    def on_flow(self, link: Link) -> None: ...

    def on_established(self, link: Link) -> None: ...

    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...

"""A consumer of a multicast whose attach is not answered yet (`router.distribution.attach_waits`)."""

from __future__ import annotations

from collections.abc import Callable

from router.connections.unstitched import UnstitchedOwner
from router.timers import Timer
from wire.errors import AmqpError
from wire.link import OutgoingLink


class WaitingConsumer(UnstitchedOwner):
    """Owner of a multicast consumer's link until the router answers the consumer's attach.

    ``leave`` is called with this object when the client leaves before the answer.
    """

    def __init__(self, link: OutgoingLink, leave: Callable[[WaitingConsumer], None]) -> None:
        self.link = link
        self.timer: Timer | None = None
        self._leave = leave

    def begin(self) -> None:
        """Become the owner of the consumer's link, to learn when the client leaves."""
        self.link.owner = self

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self._leave(self)
        self.link.close() if closed else self.link.detach()

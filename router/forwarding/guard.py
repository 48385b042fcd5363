"""Does a producer keep to what it was promised? The engine checks neither credit nor size, so this does.

A delivery is looked at before each piece of it goes on, so what is too large never reaches its end at a taker.
"""

from __future__ import annotations

from collections.abc import Callable

from wire import delivery as deliveries
from wire.errors import LinkError
from wire.link import IncomingLink


class Guard:
    """Of one client's incoming link. [2.6.7], [2.7.3]

    ``max_message_bytes`` 0: any size. ``tell`` hears of an offence.
    """

    def __init__(self, link: IncomingLink, max_message_bytes: int, tell: Callable[[LinkError], None]) -> None:
        self._link = link
        self._max_message_bytes = max_message_bytes
        self._tell = tell

    def offence(self) -> LinkError | None:
        """What the peer did that it must not; the caller ends the link with it."""
        error = self._credit_fault() or self._size_fault()
        if error is not None:
            self._tell(error)
        return error

    def _credit_fault(self) -> LinkError | None:
        excess = self._link.excess
        if excess <= 0:
            return None
        return LinkError("amqp:link:transfer-limit-exceeded", f"{excess} deliveries more than there was credit for")

    def _size_fault(self) -> LinkError | None:
        most = self._max_message_bytes
        if not most or (current := self._link.current) is None:
            return None
        size = self._link.read_bytes + deliveries.pending(current)
        if size <= most:
            return None
        return LinkError("amqp:link:message-size-exceeded", f"a message of more than the {most} bytes allowed")

"""The observer's links to addresses at which somebody awaits answers; each link stays for the next answer.

An attach costs the router more than an answer does, so a client that asks again and again has one link for all of its
answers. Each address has a link of its own: over a link without an address, a few clients that ask and grant no credit
would stop the answers of all others. A large answer goes over a second link, in a session of its own, since the unread
bytes of a client that stops in the middle fill the window of their session [2.5.6].
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from mesh.client.errors import TimedOut
from wire.delivery import OutcomeCode

if TYPE_CHECKING:
    from mesh.client.links import Sender
    from wire.delivery import Outcome

LARGE_BYTES: Final = 32 * 1024
"""A message of more bytes goes over a link in a session of its own."""
MAX_LINKS: Final = 128
"""Of more links, those that were used longest ago are closed, unless an answer is under way over them."""
IDLE_S: Final = 30.0
"""A link that was not used for so long is closed."""


class SenderSource(Protocol):
    """The part of `mesh.client.client.Client` that makes senders."""

    async def sender(self, address: str | None, *, is_apart: bool = False) -> Sender: ...


class _Key(NamedTuple):
    address: str
    is_large: bool


class _ReplyLink:
    """A link that is attached at its first use. ``use_count``: the messages under way over the link."""

    def __init__(self, client: SenderSource, key: _Key) -> None:
        self.use_count = 0
        self.used_at = 0.0
        self._is_over = False
        self._attach = asyncio.ensure_future(client.sender(key.address, is_apart=key.is_large))
        # An attach that fails after its last user has gone is nobody's error.
        self._attach.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def is_usable(self) -> bool:
        if not self._attach.done():
            return True
        return not self._attach.cancelled() and self._attach.exception() is None and self._attach.result().error is None

    async def send(self, message: bytes) -> Outcome | None:
        sender = await asyncio.shield(self._attach)
        return await (await sender.send(message))

    def end(self) -> None:
        """Close the link once no message is under way over it."""
        self._is_over = True
        self.on_use_over()

    def on_use_over(self) -> None:
        if not self._is_over or self.use_count:
            return
        if not self._attach.done():
            self._attach.cancel()
        elif not self._attach.cancelled() and self._attach.exception() is None:
            self._attach.result().close()


class ReplyLinks:
    """The links of one connection, by address, the least recently used first."""

    def __init__(self, client: SenderSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._links: dict[_Key, _ReplyLink] = {}

    def __len__(self) -> int:
        return len(self._links)

    async def deliver(self, address: str, message: bytes, timeout_s: float) -> Outcome | None:
        """Send an encoded message to ``address``, and return the outcome.

        Raises TimedOut without an outcome after ``timeout_s``, LinkRefusedError for an address that takes no messages,
        and Unreachable if the connection is lost.
        """
        key = _Key(address, len(message) > LARGE_BYTES)
        link = self._take(key)
        link.use_count += 1
        is_wanted = False
        try:
            async with asyncio.timeout(timeout_s):
                outcome = await link.send(message)
            # A released message had no receiver: the client has gone, or takes no more.
            is_wanted = outcome is not None and outcome.kind is not OutcomeCode.RELEASED
            return outcome
        except TimeoutError:
            raise TimedOut(f"{address} took no message within {timeout_s:g} s") from None
        finally:
            link.use_count -= 1
            link.used_at = self._clock()
            if is_wanted:
                link.on_use_over()
            else:
                self._drop(key, link)
            self._drop_least_used()

    def close_idle(self) -> None:
        """Close the links that were not used for IDLE_S."""
        due = self._clock() - IDLE_S
        for key, link in list(self._links.items()):
            if not link.use_count and link.used_at <= due:
                self._drop(key, link)

    async def run(self) -> None:
        """Close idle links for as long as the connection is there."""
        while True:
            await asyncio.sleep(IDLE_S / 2)
            self.close_idle()

    def _take(self, key: _Key) -> _ReplyLink:
        link = self._links.pop(key, None)
        if link is None or not link.is_usable:
            link = _ReplyLink(self._client, key)
        self._links[key] = link
        return link

    def _drop(self, key: _Key, link: _ReplyLink) -> None:
        if self._links.get(key) is link:
            del self._links[key]
        link.end()

    def _drop_least_used(self) -> None:
        spare = len(self._links) - MAX_LINKS
        unused = ((key, link) for key, link in list(self._links.items()) if not link.use_count)
        for (key, link), _ in zip(unused, range(spare), strict=False):
            self._drop(key, link)

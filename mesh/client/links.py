"""The links of a client: a sender waits for the peer's credit and sends, a receiver grants credit and receives."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mesh.client.bodies import BodySink, HeldBody, MessageAssembly
from mesh.client.errors import MeshError
from wire import delivery as deliveries
from wire.delivery import Outcome
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, OutgoingLink

CHUNK_BYTES = 32 * 1024
REFUSALS_TO_MEND = {
    "amqp:not-found": "declare the address in the topology, or correct its name.",
    "amqp:unauthorized-access": "log in as a user whose send or receive patterns match the address.",
}
# A declared address of type `unavailable` is refused with amqp:not-found, too; only the description shows the type.
UNAVAILABLE_TO_MEND = "the topology declares the address `unavailable`: give the address another type."


class LinkRefusedError(MeshError):
    """The peer refused or detached a link; ``condition`` is the AMQP error condition, or `no reason given`."""

    def __init__(self, error: AmqpError | None, what: str) -> None:
        condition = error.condition if error is not None else "no reason given"
        description = error.description if error is not None and error.description else condition
        fix = UNAVAILABLE_TO_MEND if description.endswith("is unavailable") else REFUSALS_TO_MEND.get(condition)
        super().__init__(f"{what}: {description}", code=condition, fix=fix)
        self.condition = condition


class ConnectionWaits(Protocol):
    """The part of a client connection that its senders and receivers use: waiting for input, and flushing output."""

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        """Return once ``holds()`` is true; ``holds`` is called again after each input from the peer and each flush."""

    def wake(self) -> None:
        """Send the peer the frames of all changes made to links, at the next turn of the event loop."""


@dataclass(frozen=True, slots=True)
class Received:
    """One complete delivery; the caller has yet to settle the delivery, unless the sender sent it pre-settled."""

    data: bytes
    pointer: Pointer
    is_settled: bool
    body: bytes | Path | None = None
    """For a message that came in pieces: the content of its data sections, or that content's file; else None.

    ``data`` then has all other sections of the message.
    """


class Sender:
    """A client's outgoing link: ``send`` waits for credit, sends, and returns a future for the outcome."""

    def __init__(self, waits: ConnectionWaits, link: OutgoingLink, address: str | None, is_presettled: bool) -> None:
        self._waits = waits
        self._link = link
        self.address = address
        self.purpose = f"cannot send to {address or 'the anonymous terminus'}"
        self._is_presettled = is_presettled
        self._tag = 0
        self._outcomes: dict[Pointer, asyncio.Future[Outcome | None]] = {}
        self._is_writing = False
        """Whether a delivery has begun and is not complete: the next one begins behind it. [2.6.14]"""
        self.error: MeshError | None = None

    @property
    def credit(self) -> int:
        return 0 if self._link.is_gone else self._link.credit

    @property
    def unsettled(self) -> int:
        return len(self._outcomes)

    async def send(
        self, data: bytes | Iterable[bytes], on_moved: Callable[[], None] = lambda: None
    ) -> asyncio.Future[Outcome | None]:
        """Send a delivery once there is credit. The future's outcome is None for a delivery sent settled, or settled by
        the peer without an outcome; a link that ends first sets its error as the future's exception.

        A message of any size may be given in pieces; ``on_moved`` is called for each chunk of 32 KiB or less that goes
        out. An exception while the pieces are written aborts the delivery, and is raised.
        """
        # Of several callers that wait, the first to run may use up what all of them waited for.
        await self._wait(self._can_begin)
        while not self._can_begin():
            await self._wait(self._can_begin)
        self._is_writing = True
        self._tag += 1
        pointer = self._link.start(self._tag.to_bytes(8, "big"))
        outcome: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        if not self._is_presettled:
            self._outcomes[pointer] = outcome
        try:
            await self._write((data,) if isinstance(data, bytes) else data, on_moved)
        except BaseException:
            self._abort(pointer)
            raise
        finally:
            self._is_writing = False
        if self._is_presettled:
            deliveries.settle(pointer)
            self._link.endpoint.mark_dirty()
            outcome.set_result(None)
        else:
            self._link.finish()
        self._waits.wake()
        return outcome

    def _can_begin(self) -> bool:
        return not self._is_writing and self.credit > 0 and self._link.is_writable

    async def _write(self, pieces: Iterable[bytes], on_moved: Callable[[], None]) -> None:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                await self._wait(lambda: self._link.is_writable)
                self._link.send(view[:CHUNK_BYTES])
                view = view[CHUNK_BYTES:]
                self._waits.wake()
                on_moved()

    def _abort(self, pointer: Pointer) -> None:
        self._outcomes.pop(pointer, None)
        if not self._link.is_gone:
            self._link.abort(pointer)
            self._waits.wake()

    async def wait_credit(self) -> None:
        await self._wait(lambda: self.credit > 0)

    async def _wait(self, holds: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return self.error is not None or holds()

        await self._waits.wait_for(is_over)
        if self.error is not None:
            raise self.error

    def on_disposition(self, pointer: Pointer) -> None:
        if not deliveries.has_outcome(pointer) and not deliveries.is_settled(pointer):
            return
        outcome = self._outcomes.pop(pointer, None)
        result = deliveries.remote_outcome(pointer)
        deliveries.settle(pointer)
        self._link.endpoint.mark_dirty()
        if outcome is not None and not outcome.done():
            outcome.set_result(result)

    def fail(self, error: MeshError) -> None:
        self.error = self.error or error
        for outcome in self._outcomes.values():
            if not outcome.done():
                outcome.set_exception(error)
                # This call marks the exception as seen, so that asyncio logs none if no caller waits any more.
                outcome.exception()
        self._outcomes.clear()

    def close(self) -> None:
        self._link.close()
        self._waits.wake()


class Receiver:
    """A client's incoming link: grants the sender up to ``credit`` deliveries, and queues them for the caller."""

    def __init__(
        self,
        waits: ConnectionWaits,
        link: IncomingLink,
        address: str | None,
        credit: int,
        keep_body: Callable[[], BodySink] = HeldBody,
        *,
        is_kept: bool = False,
    ) -> None:
        """Make the receiver for ``link``; ``is_kept``: the link receives from a durable subscription, which ``close``
        does not end, since ``close`` only detaches the link.
        """
        self._waits = waits
        self._link = link
        self.address = address
        self.purpose = f"cannot receive from {address or 'a dynamic address'}"
        self._is_kept = is_kept
        self._credit = credit
        self._keep_body = keep_body
        self._arrival: MessageAssembly | None = None
        """The delivery of which some pieces have arrived and others have not; None if there is none."""
        self._arrived: deque[Received] = deque()
        self.error: MeshError | None = None
        self.on_moved: Callable[[], None] = lambda: None
        """Called for each piece of a large message that arrives."""

    @property
    def answered_address(self) -> str | None:
        """Return the source's address in the peer's attach: for a dynamic source, the one that the peer made up."""
        return self._link.remote_source.address

    def top_up(self, bound: int | None = None) -> None:
        """Fill the link's credit up to the receiver's ``credit``, or to ``bound`` if that is less, once half or more of
        it is used or none is left. Each complete delivery that the caller has not taken yet takes the place of one
        credit.
        """
        wanted = self._credit if bound is None else min(self._credit, bound)
        missing = wanted - self._link.credit - len(self._arrived)
        if missing > 0 and (missing * 2 >= wanted or self._link.credit == 0):
            self._link.grant(missing)
            self._waits.wake()

    async def receive(self) -> Received:
        await self._waits.wait_for(lambda: bool(self._arrived) or self.error is not None)
        return self._take()

    async def receive_until_empty(self, bound: int | None = None) -> Received | None:
        """Return the next delivery. If none has arrived, ask the peer for deliveries with a drain; return None if the
        peer answers the drain without a delivery, since the source is empty. [2.6.7] The caller grants no credit
        otherwise: no drain is sent while the link has credit.
        """
        if not self._arrived and self._link.credit == 0:
            self._link.request_drain(self._credit if bound is None else min(self._credit, bound))
            self._waits.wake()
        await self._waits.wait_for(lambda: bool(self._arrived) or self.error is not None or self._is_drained())
        if not self._arrived and self.error is None:
            return None
        return self._take()

    def _is_drained(self) -> bool:
        # A delivery uses credit at its first transfer, so the peer may answer the drain while a delivery is still
        # arriving: the caller waits for this delivery.
        return self._arrival is None and not self._link.is_drain_pending

    def _take(self) -> Received:
        if self._arrived:
            return self._arrived.popleft()
        assert self.error is not None
        raise self.error

    def settle(self, received: Received, outcome: Outcome) -> None:
        if not received.is_settled:
            deliveries.set_outcome(received.pointer, outcome)
            deliveries.settle(received.pointer)
            self._link.endpoint.mark_dirty()
            self._waits.wake()

    def on_delivery(self, pointer: Pointer) -> None:
        if self._link.current != pointer or self.error is not None:
            return
        if deliveries.is_aborted(pointer):
            self.discard()
            self._link.advance()
            deliveries.settle(pointer)
            return
        try:
            self._read(pointer)
        except MeshError as failed:
            self.discard()
            self.fail(failed)

    def _read(self, pointer: Pointer) -> None:
        data = self._link.recv(max(deliveries.pending(pointer), 1))
        if self._arrival is None and not deliveries.is_partial(pointer):
            self._on_complete(pointer, data, None)
            return
        self._arrival = self._arrival or MessageAssembly(self._keep_body)
        while data:
            self._arrival.feed(data)
            self.on_moved()
            data = self._link.recv(max(deliveries.pending(pointer), 1))
        if not deliveries.is_partial(pointer):
            arrival, self._arrival = self._arrival, None
            self._on_complete(pointer, *arrival.finish())

    def _on_complete(self, pointer: Pointer, data: bytes, body: bytes | Path | None) -> None:
        is_settled = bool(deliveries.is_settled(pointer))
        self._link.advance()
        if is_settled:
            deliveries.settle(pointer)
        self._arrived.append(Received(data, pointer, is_settled, body))

    def discard(self) -> None:
        """Drop what has come of a delivery that is not complete yet, with the partial file of its body, if any."""
        if self._arrival is not None:
            self._arrival.discard()
            self._arrival = None

    def fail(self, error: MeshError) -> None:
        self.error = self.error or error

    @property
    def is_durable(self) -> bool:
        """Tell whether the source in the peer's attach, such as a durable subscription, outlives the link."""
        return self._link.remote_source.outlives_link

    def close(self) -> None:
        """Close the link, or detach from a durable subscription. Drop deliveries that the caller has not taken.

        The dropped deliveries are not settled, so the peer still has their messages unless it had settled them.
        """
        self.discard()
        for received in self._arrived:
            if isinstance(received.body, Path):
                received.body.unlink(missing_ok=True)
        self._arrived.clear()
        if self._is_kept:
            self._link.detach()
        else:
            self._link.close()
        self._waits.wake()

    async def end(self) -> None:
        """Close the link, by which the peer deletes the durable subscription; return once the peer has closed, too."""
        self._link.close()
        self._waits.wake()
        await self._waits.wait_for(lambda: self._link.is_gone or self.error is not None)
        if self.error is not None:
            raise self.error

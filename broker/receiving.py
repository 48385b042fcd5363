"""An incoming link of a broker: from a producer's bytes to a message that is on disk, and only then accepted.

Spec: AMQP 1.0 [2.6.7] flow control, [2.6.12] transfers in pieces, [2.6.14] aborted ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from broker.commit import Commits
from broker.message import Message
from broker.shelf import Shelf
from broker.stock import HeldQueue, Stock
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, Outcome
from wire.engine import Pointer
from wire.errors import AmqpError, LinkError
from wire.link import IncomingLink
from wire.sections import Incomplete, MessageHead, scan

LINK_CREDIT = 500
LARGE_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
UNSYNCED_LIMIT_BYTES = 16 << 20
PINNED_LIMIT_BYTES = 256 << 20
TEMPORARY_TTL_S = 60.0

Targets = Callable[[str], list[HeldQueue]]
"""Where a message to this address goes; raises AmqpError when it cannot go there."""


@dataclass(slots=True)
class Gate:
    """Holds all producers back while what they sent waits for the disk, or for memory."""

    commits: Commits
    shelf: Shelf
    waiting: dict[Receiving, None] = field(default_factory=dict)

    @property
    def is_shut(self) -> bool:
        return self.commits.unsynced_bytes >= UNSYNCED_LIMIT_BYTES or self.shelf.pinned_bytes >= PINNED_LIMIT_BYTES

    def next_ready(self) -> Receiving | None:
        """One that was held back and may go on; None while the gate is shut, or nobody waits."""
        if not self.waiting or self.is_shut:
            return None
        receiving = next(iter(self.waiting))
        del self.waiting[receiving]
        return receiving


@dataclass(slots=True)
class Arriving:
    """A delivery of which a part is here. Once large, its pieces go to the store and only the size stays."""

    pieces: list[bytes] = field(default_factory=list)
    head: MessageHead | None = None
    large_id: int | None = None
    size_bytes: int = 0
    refusal: AmqpError | None = None


class Receiving:
    """Always: ``_credit + unsynced + _room == LINK_CREDIT``, a delivery that is still arriving counted as credit."""

    def __init__(
        self, link: IncomingLink, address: str | None, targets: Targets, stock: Stock, commits: Commits, gate: Gate
    ) -> None:
        self.link = link
        self.address = address
        self._targets = targets
        self._stock = stock
        self._commits = commits
        self._gate = gate
        self._arriving = Arriving()
        self._credit = 0
        self._room = LINK_CREDIT
        self._is_over = False

    def on_attached(self, now: float) -> None:
        self._top_up()

    def on_delivery(self, now: float) -> None:
        """Take what is here. Raises LinkError when the sender had no credit. [2.8.18]"""
        while (delivery := self.link.current) is not None:
            if self._gate.is_shut:
                # What is not read stays in the session's window, which closes.
                self._gate.waiting[self] = None
                return
            if not self._credit:
                raise LinkError("amqp:link:transfer-limit-exceeded", f"{self.link.excess} deliveries beyond the credit")
            self._read(delivery)
            if deliveries.is_aborted(delivery):
                self._drop_arriving()
                self.link.advance()
                deliveries.settle(delivery)
                self._credit -= 1
                self._room += 1
            elif deliveries.is_partial(delivery):
                return
            else:
                self.link.advance()
                self._on_complete(delivery, now)
        self._top_up()

    def end(self) -> None:
        """The link is gone: whatever was promised on it cannot be said any more."""
        self._is_over = True
        self._gate.waiting.pop(self, None)
        self._drop_arriving()

    # Reading

    def _read(self, delivery: Pointer) -> None:
        arriving = self._arriving
        while pending_bytes := deliveries.pending(delivery):
            piece = self.link.recv(min(pending_bytes, PIECE_BYTES))
            if not piece:
                return  # aborted: what is pending cannot be had
            arriving.size_bytes += len(piece)
            if arriving.refusal is not None:
                continue
            if arriving.large_id is not None:
                self._store_piece(arriving.large_id, piece)
                continue
            arriving.pieces.append(piece)
            if arriving.size_bytes > LARGE_BYTES:
                self._become_large(arriving)

    def _become_large(self, arriving: Arriving) -> None:
        start = b"".join(arriving.pieces)
        arriving.pieces.clear()
        try:
            arriving.head = _scan(start)
        except AmqpError as error:
            # Read to the end all the same: settling earlier would spoil the session's window.
            arriving.refusal = error
            return
        arriving.large_id = self._stock.new_message_id()
        self._store_piece(arriving.large_id, start)

    def _store_piece(self, message_id: int, piece: bytes) -> None:
        self._commits.write.pieces.append((message_id, piece))
        self._commits.note_bytes(len(piece))

    def _drop_arriving(self) -> None:
        if self._arriving.large_id is not None:
            self._stock.discard_large(self._arriving.large_id)
        self._arriving = Arriving()

    # Complete

    def _on_complete(self, delivery: Pointer, now: float) -> None:
        self._credit -= 1
        arriving = self._arriving
        body = None if arriving.large_id is not None else b"".join(arriving.pieces)
        try:
            head = _head_of(arriving, body)
            targets = self._targets_of(head)
        except AmqpError as error:
            self._drop_arriving()
            self._conclude(delivery, Outcome(deliveries.Kind.REJECTED, error))
            self._room += 1
        else:
            self._accept(delivery, head, body, targets, now)

    def _targets_of(self, head: MessageHead) -> list[HeldQueue]:
        address = self.address if self.address is not None else head.to
        if address is None:
            raise AmqpError("amqp:not-found", "neither the link nor the message says where it goes")
        return self._targets(address)

    def _accept(
        self, delivery: Pointer, head: MessageHead, body: bytes | None, targets: list[HeldQueue], now: float
    ) -> None:
        if not targets:
            self._drop_arriving()
            self._conclude(delivery, ACCEPTED)
            self._room += 1
            return
        message = self._make_message(head, targets, now)
        self._arriving = Arriving()
        self._stock.write(message, body, targets)
        waiting: Pointer | None = delivery
        if deliveries.is_settled(delivery):
            deliveries.settle(delivery)
            waiting = None
        self._commits.promise(partial(self._on_written, waiting, message, targets))

    def _make_message(self, head: MessageHead, targets: list[HeldQueue], now: float) -> Message:
        arriving = self._arriving
        ttl_s = head.ttl_s or None
        # Whatever its header says of durability: accepted is accepted, and most clients never set it.
        is_stored = False
        for held in targets:
            is_stored = is_stored or held.is_written
            if held.is_temporary:
                ttl_s = min(ttl_s or TEMPORARY_TTL_S, TEMPORARY_TTL_S)
        return Message(
            message_id=self._stock.new_message_id() if arriving.large_id is None else arriving.large_id,
            size_bytes=arriving.size_bytes,
            is_stored=is_stored,
            is_large=arriving.large_id is not None,
            expires_at_s=None if ttl_s is None else now + ttl_s,
        )

    def _on_written(self, delivery: Pointer | None, message: Message, targets: list[HeldQueue], now: float) -> None:
        """It is on disk, where it has to be: accept it, unless it came settled, and give it to who waits."""
        self._stock.on_written(message, targets, now)
        if self._is_over:
            return
        if delivery is not None:
            self._conclude(delivery, ACCEPTED)
        self._room += 1
        self._top_up()

    def _conclude(self, delivery: Pointer, outcome: Outcome) -> None:
        if not deliveries.is_settled(delivery):
            deliveries.set_outcome(delivery, outcome)
        deliveries.settle(delivery)
        self.link.endpoint.mark_dirty()

    def _top_up(self) -> None:
        # A flow frame per delivery would double the frames. What is not synced yet calls again.
        if self._room * 2 < LINK_CREDIT:
            return
        if self._gate.is_shut:
            self._gate.waiting[self] = None
            return
        self.link.grant(self._room)
        self._credit += self._room
        self._room = 0


def _head_of(arriving: Arriving, body: bytes | None) -> MessageHead:
    """Of a complete message. Raises AmqpError for what is none."""
    if arriving.refusal is not None:
        raise arriving.refusal
    if arriving.head is not None:
        return arriving.head
    return _scan(body or b"")


def _scan(data: bytes) -> MessageHead:
    if not data:
        raise AmqpError("amqp:decode-error", "an empty delivery is no message")
    try:
        return scan(data)
    except Incomplete:
        raise AmqpError(
            "amqp:decode-error", f"the message is cut, or its head is longer than {len(data)} bytes"
        ) from None

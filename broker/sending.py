"""An outgoing link of a broker: from a queue to a consumer, and its outcome back to the disk.

Spec: AMQP 1.0 [2.6.7] flow control and drain, [2.6.12] settlement, [3.4] outcomes.

    queue --take--> outbox --pump--> (current) --> unsettled --on_disposition--> queue, and once on disk: settled

Only what can be written now is handed to the engine; a body that is not in memory is fetched while its parcel waits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial

from broker.commit import Commits
from broker.message import Entry
from broker.queue import Verdict
from broker.shelf import Shelf
from broker.stock import HeldQueue, Stock
from broker.store.batch import BodyRange
from wire import delivery as deliveries
from wire.delivery import Kind, Outcome
from wire.engine import Pointer
from wire.header import with_header
from wire.link import SEND_SETTLED, OutgoingLink

OUTBOX_DELIVERIES = 100
CHUNK_BYTES = 32 << 10
READ_AHEAD_BYTES = 256 << 10
REFILL_PIECES = 4


@dataclass(slots=True, eq=False)
class Parcel:
    """An entry on its way out, with what is here of its body."""

    entry: Entry
    pieces: list[bytes] = field(default_factory=list)
    fetched_bytes: int = 0
    is_fetching: bool = False

    @property
    def is_fetched(self) -> bool:
        return self.fetched_bytes >= self.entry.message.size_bytes

    @property
    def is_written(self) -> bool:
        return self.is_fetched and not self.pieces

    def add(self, body: bytes) -> None:
        """The next bytes of the body: all of a small one, READ_AHEAD_BYTES of a large one."""
        is_start = self.fetched_bytes == 0
        self.fetched_bytes += len(body)
        if is_start and self.entry.was_seen:
            body = with_header(body, delivery_count=self.entry.delivery_count)
        if len(body) <= CHUNK_BYTES:
            self.pieces.append(body)
        else:
            self.pieces.extend(body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES))


class Sending:
    """Always: the queue's credit for it is what the peer granted, less what is in the outbox or being written

    ``_unsettled`` are complete deliveries without an outcome, ``_unconfirmed`` those with one that is not on disk yet.
    """

    def __init__(
        self, link: OutgoingLink, held: HeldQueue, stock: Stock, shelf: Shelf, commits: Commits, *, is_browser: bool
    ) -> None:
        self.link = link
        self.held = held
        self.consumer_id = stock.new_consumer_id()
        self._stock = stock
        self._shelf = shelf
        self._commits = commits
        self._is_browser = is_browser
        self._is_settled = False
        self._credit = 0
        self._is_over = False
        self._outbox: deque[Parcel] = deque()
        self._current: tuple[Parcel, Pointer] | None = None
        self._is_current_judged = False
        self._unsettled: dict[Pointer, Entry] = {}
        self._unconfirmed: dict[Pointer, int] = {}
        self._next_tag = 0

    def on_attached(self, now: float) -> None:
        self._is_settled = self.link.remote_settle_modes[0] == SEND_SETTLED
        self.held.consumers[self.consumer_id] = self
        if self._is_browser:
            self.held.queue.attach_browser(self.consumer_id)
        else:
            self.held.queue.attach(self.consumer_id)
        self.pump(now)

    def take(self, entry: Entry) -> None:
        """From the queue: it is this consumer's now."""
        parcel = Parcel(entry)
        self._outbox.append(parcel)
        body = None if entry.message.is_large else self._shelf.get(entry.message_id)
        if body is not None:
            parcel.add(body)
        elif not entry.message.is_large:
            self._fetch(parcel)
        self._stock.to_pump[self] = None

    def pump(self, now: float) -> None:
        """Write what can be written, ask the queue for what else could be, answer a drain when there is nothing."""
        if self._is_over:
            return
        self._credit = self.link.credit
        while self._write_next(now):
            pass
        self._tell_credit(now)
        if self.link.is_draining and self._credit > 0 and self._is_dry(now):
            self.link.drained()

    def on_writable(self) -> None:
        self._stock.to_pump[self] = None

    def on_disposition(self, delivery: Pointer, now: float) -> None:
        """The consumer gave an outcome, or settled."""
        if self._current is not None and self._current[1] == delivery:
            self._is_current_judged = True  # looked at when all of it is written
            return
        is_settled = deliveries.is_settled(delivery)
        entry = self._unsettled.get(delivery)
        if entry is None:
            if is_settled and self._unconfirmed.pop(delivery, None) is not None:
                deliveries.settle(delivery)
            return
        outcome = deliveries.remote_outcome(delivery)
        if outcome is None and not is_settled:
            return
        del self._unsettled[delivery]
        if is_settled:
            deliveries.settle(delivery)
        self._conclude(entry, outcome, now)
        if not is_settled:
            self._confirm(delivery, outcome)

    def end(self, now: float) -> None:
        """The link is gone, or going: what it held comes back. The link must not have been freed yet."""
        if self._is_over:
            return
        self._is_over = True
        if self._current is not None:
            parcel, delivery = self._current
            if not self.link.is_gone:
                self.link.abort(delivery)
            self._stock.release(parcel.entry.message)
        unwritten = [parcel.entry for parcel in self._outbox]
        self._outbox.clear()
        del self.held.consumers[self.consumer_id]
        self._stock.carry_out(self.held, self.held.queue.detach(self.consumer_id, unwritten, now))
        for entry in unwritten:
            self._stock.release(entry.message)

    # Writing

    def _write_next(self, now: float) -> bool:
        """Write one chunk; False when nothing can be written now."""
        if self._current is None and not (self._outbox and self._credit > 0):
            return False
        parcel = self._current[0] if self._current is not None else self._outbox[0]
        if not parcel.is_fetched and len(parcel.pieces) <= REFILL_PIECES:
            self._fetch(parcel)
        if not parcel.pieces:
            return False
        if not self.link.is_writable:
            self.link.endpoint.wait_for_room(self)
            return False
        delivery = self._current[1] if self._current is not None else self._start()
        self.link.send(parcel.pieces.pop(0))
        if parcel.is_written:
            self._finish(parcel, delivery, now)
        return True

    def _start(self) -> Pointer:
        parcel = self._outbox.popleft()
        self._next_tag += 1
        delivery = self.link.start(self._next_tag.to_bytes(8, "big"))
        self._current = (parcel, delivery)
        return delivery

    def _finish(self, parcel: Parcel, delivery: Pointer, now: float) -> None:
        self.link.finish()
        self._credit -= 1
        self._current = None
        self._stock.release(parcel.entry.message)
        if self._is_settled:
            # Sent, then forgotten on disk: after a crash it may come again, but it is never lost unsent.
            deliveries.settle(delivery)
            self._conclude(parcel.entry, deliveries.ACCEPTED, now)
            return
        self._unsettled[delivery] = parcel.entry
        if self._is_current_judged:
            self._is_current_judged = False
            self.on_disposition(delivery, now)

    def _fetch(self, parcel: Parcel) -> None:
        if parcel.is_fetching:
            return
        parcel.is_fetching = True
        message = parcel.entry.message
        size_bytes = READ_AHEAD_BYTES if message.is_large else message.size_bytes
        wanted = BodyRange(message.message_id, message.is_large, parcel.fetched_bytes, size_bytes)
        # Not to be deleted while it is read, though the entry may be archived meanwhile.
        message.references += 1
        self._shelf.fetch(wanted, partial(self._on_body, parcel))

    def _on_body(self, parcel: Parcel, body: bytes, now: float) -> None:
        parcel.is_fetching = False
        parcel.add(body)
        self._stock.release(parcel.entry.message)
        self._stock.to_pump[self] = None

    def _tell_credit(self, now: float) -> None:
        free = self._credit - len(self._outbox) - (self._current is not None)
        credit = max(0, min(free, OUTBOX_DELIVERIES - len(self._outbox)))
        self._stock.carry_out(self.held, self.held.queue.set_credit(self.consumer_id, credit, now))
        if free < 0 and not self._is_browser and not self.held.is_deleted:
            self._give_back(-free, now)

    def _give_back(self, count: int, now: float) -> None:
        """The peer took back credit that these, the last of the outbox, were meant for: others may have them."""
        parcels = [self._outbox.pop() for _ in range(min(count, len(self._outbox)))]
        for parcel in reversed(parcels):
            actions = self.held.queue.settle(self.consumer_id, parcel.entry, Verdict.RELEASED, now)
            self._stock.carry_out(self.held, actions)
            self._stock.release(parcel.entry.message)

    def _is_dry(self, now: float) -> bool:
        return not self._outbox and self._current is None and self.held.queue.is_dry_for(self.consumer_id, now)

    # Outcomes

    def _conclude(self, entry: Entry, outcome: Outcome | None, now: float) -> None:
        if self._is_browser or self.held.is_deleted:
            return
        verdict, shun = _read(outcome)
        actions = self.held.queue.settle(self.consumer_id, entry, verdict, now, shun=shun)
        self._stock.carry_out(self.held, actions)

    def _confirm(self, delivery: Pointer, outcome: Outcome | None) -> None:
        """Settle once what the outcome changed is on disk; at once when it changed nothing there."""
        self._next_tag += 1
        self._unconfirmed[delivery] = self._next_tag
        self._commits.promise(partial(self._settle_synced, delivery, self._next_tag))

    def _settle_synced(self, delivery: Pointer, serial: int, now: float) -> None:
        # The engine reuses deliveries: the serial tells whether this is still the one that was meant.
        if self._is_over or self._unconfirmed.get(delivery) != serial:
            return
        del self._unconfirmed[delivery]
        outcome = deliveries.remote_outcome(delivery)
        if outcome is not None:
            deliveries.set_outcome(delivery, outcome)
        deliveries.settle(delivery)
        self.link.endpoint.mark_dirty()


def _read(outcome: Outcome | None) -> tuple[Verdict, bool]:
    """(verdict, undeliverable-here). Settled without an outcome says nothing: in doubt, as if the link had broken."""
    if outcome is None:
        return Verdict.FAILED, False
    match outcome.kind:
        case Kind.ACCEPTED:
            return Verdict.ACCEPTED, False
        case Kind.REJECTED:
            return Verdict.REJECTED, False
        case Kind.MODIFIED:
            return Verdict.FAILED if outcome.delivery_failed else Verdict.RELEASED, outcome.undeliverable_here
        case _:
            return Verdict.RELEASED, False

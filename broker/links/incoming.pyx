"""An incoming link of a broker: a producer's bytes become a message, accepted only once on disk.

Spec: AMQP 1.0 [2.6.7] flow control, [2.6.12] transfers in pieces, [2.6.14] aborted ones.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY

from broker.queueing.commit cimport Commits, Promise
from broker.links.second_settlement cimport SecondSettlement, SecondSettlements
from broker.queueing.message cimport QueuedMessage
from broker.queueing.held_queue cimport HeldQueue, QueueProducer
from broker.queueing.message_store cimport MessageStore
from wire.core cimport IncomingCore
from wire.delivery cimport pending_now
from wire.drought cimport Drought, take_us, turn
from wire.proton cimport ACCEPTED_STATE, TRANSACTIONAL_STATE, pn, pn_delivery_t
from wire.sections cimport CUT, MOST_HEAD_BYTES, WHOLE, Head, fault_in, scan_head

from addressing.queue_policy import WhenFull
from wire.delivery import OutcomeCode, Outcome, set_outcome
from wire.errors import AmqpError, LinkError, LocalStateError
from wire.sections import Incomplete, scan

LINK_CREDIT = 500
LARGE_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
UNSYNCED_LIMIT_BYTES = 16 << 20
PINNED_LIMIT_BYTES = 256 << 20
TEMPORARY_TTL_S = 60.0

cdef enum:
    USUAL_PRIORITY = 4
    MOST_URGENT = 9

cdef tuple _SHEDDING = (WhenFull.DROP_OLDEST, WhenFull.DEAD_LETTER)
cdef long _LINK_CREDIT = LINK_CREDIT
cdef size_t _LARGE_BYTES = LARGE_BYTES, _PIECE_BYTES = PIECE_BYTES
cdef long long _UNSYNCED_LIMIT_BYTES = UNSYNCED_LIMIT_BYTES, _PINNED_LIMIT_BYTES = PINNED_LIMIT_BYTES
cdef double _TEMPORARY_TTL_S = TEMPORARY_TTL_S


cdef class ProducerGate:
    """Holds all producers back while too many bytes wait for the disk, or too much memory is pinned.

    While the disk is low the gate holds back producers whose messages would be kept on disk; others, such as probes, go
    on, except with a large message.
    """

    def __init__(self, Commits commits not None, BodyCache shelf not None):
        self.commits, self.shelf = commits, shelf
        self.waiting, self.waiting_for_room = {}, {}

    cdef bint is_shut_now(self) noexcept:
        if self.commits.unsynced_bytes >= _UNSYNCED_LIMIT_BYTES:
            return True
        return self.is_short_of_memory_now()

    cdef bint is_short_of_memory_now(self) noexcept:
        return self.shelf.pinned_bytes >= _PINNED_LIMIT_BYTES

    @property
    def is_short_of_memory(self):
        return self.is_short_of_memory_now()

    cdef bint holds_back(self, BrokerReceiver receiving) except? True:
        """Whether the link has to wait; if so, ``let_in`` will let the link go on."""
        if self.is_shut_now():
            self.waiting[receiving] = None
            return True
        if self.is_disk_low and (receiving.is_for_disk or receiving.size_bytes > _LARGE_BYTES):
            self.waiting_for_room[receiving] = None
            return True
        return False

    cdef int forget(self, BrokerReceiver receiving) except -1:
        self.waiting.pop(receiving, None)
        self.waiting_for_room.pop(receiving, None)
        return 0

    def on_disk(self, *, bint is_low):
        """Call ``let_in`` next."""
        self.is_disk_low = is_low
        if not is_low:
            self.waiting.update(self.waiting_for_room)
            self.waiting_for_room.clear()

    def let_in(self):
        """Let one waiting link go on; False while the gate is shut, or no link waits."""
        cdef BrokerReceiver receiving
        if not self.waiting or self.is_shut_now():
            return False
        receiving = next(iter(self.waiting))
        del self.waiting[receiving]
        receiving.go_on()
        return True


cdef class _Written(Promise):
    """A message is on disk, if a durable queue holds the message."""

    cdef BrokerReceiver receiving
    cdef pn_delivery_t *delivery  # NULL: pre-settled
    cdef QueuedMessage message
    cdef list targets

    cdef int keep(self, double now) except -1:
        return self.receiving._on_written(self.delivery, self.message, self.targets, now)


cdef class BrokerReceiver(QueueProducer):
    """Always: ``credit_count + unsynced + room == LINK_CREDIT``, with a delivery still arriving counted as credit.

    ``limited`` is the queue whose room limits the credit of this link.
    """

    def __init__(self, IncomingCore link not None, address, queues, targets, fail, MessageStore stock not None,
                 Commits commits not None, ProducerGate gate not None):
        """Send messages to ``queues``, or to the queues ``targets`` returns for an address.

        ``targets`` raises AmqpError if no queue can take the message. ``fail`` is called with the link and a LinkError.
        """
        self.link, self.address = link, address
        self.queues, self.targets, self.fail = queues, targets, fail
        self.stock, self.commits, self.gate = stock, commits, gate
        self.limited = _blocking_one(queues)
        # Without a fixed address the queue is not known before the message: probably durable.
        self.is_for_disk = queues is None or any([(<HeldQueue>held).row is not None for held in queues])
        self.record_level = (<HeldQueue>queues[0]).record_level if queues else stock.recorder.level
        self.room = _LINK_CREDIT
        self.pieces = []
        self._forget_arriving()

    def on_attached(self, double now):
        self.drought = Drought(True, self.stock.recorder.now_us, 0)
        self._note_credit()
        self._top_up()

    def await_last_word(self, SecondSettlements last_words not None):
        """Settle after the producer, who asked to settle after the outcome. [2.8.3]"""
        self.last_word = SecondSettlement(last_words, self._on_no_last_word)

    def _on_no_last_word(self, deliveries):
        for delivery in deliveries:
            self._settle(<pn_delivery_t *><size_t>delivery)
        self._top_up()

    def end(self):
        """The link is gone: nothing promised on the link can be answered any more."""
        self.is_over = True
        self.gate.forget(self)
        if self.last_word is not None:
            self.last_word.end()
        if self.limited is not None:
            self.limited.promised -= self.credit_count
            self.limited.held_back.pop(self, None)
            self.stock.with_room[self.limited] = None
        self._drop_arriving()

    # wire.core.DeliveryOwner
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        return self.go_on()

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        if self.last_word is None or not pn.delivery_settled(delivery) or not self.last_word.is_given(<size_t>delivery):
            return 0
        self._settle(delivery)
        return self._top_up()

    cdef int on_flow_event(self) except -1:
        return 0

    # broker.queueing.message_store.QueueProducer
    cdef int on_room_in_queue(self) except -1:
        return 0 if self.is_over or self.link.is_gone else self._top_up()

    cdef int go_on(self) except -1:
        """Read the deliveries here. A delivery without credit breaks the rules: the link fails. [2.8.18]"""
        cdef pn_delivery_t *delivery
        while not self.is_over and not self.link.is_gone and not self.link.is_faulty():
            delivery = self.link.current_now()
            if delivery is NULL:
                break
            if self.gate.holds_back(self):
                # Unread deliveries stay in the session's window, which closes.
                return self._note_credit()
            if not self.credit_count:
                what = f"the peer sent {self.link.excess} deliveries beyond its credit"
                self.fail(self.link, LinkError("amqp:link:transfer-limit-exceeded", what), self.stock.now)
                return 0
            self._read(delivery)
            if pn.delivery_aborted(delivery):
                self._drop_arriving()
                self.link.advance_now()
                pn.delivery_settle(delivery)
                self._spend()
                self.room += 1
            elif pn.delivery_partial(delivery):
                return 0
            else:
                self.link.advance_now()
                self._on_complete(delivery)
        return 0 if self.is_over else self._top_up()

    # Reading
    cdef int _read(self, pn_delivery_t *delivery) except -1:
        cdef size_t pending, size
        cdef ssize_t taken
        cdef bytes piece
        while (pending := pending_now(delivery)):
            size = min(pending, _PIECE_BYTES)
            piece = PyBytes_FromStringAndSize(NULL, size)
            taken = self.link.recv_into(PyBytes_AS_STRING(piece), size)
            if taken != <ssize_t>size:
                raise LocalStateError(f"the engine gave {taken} bytes of a delivery with {pending} bytes to read")
            self.size_bytes += size
            if self.refusal is not None:
                continue
            if self.large_id:
                self._store_piece(piece)
                continue
            self.pieces.append(piece)
            if self.size_bytes > _LARGE_BYTES and not self.gate.is_disk_low:
                self._become_large()
        return 0

    cdef int _become_large(self) except -1:
        cdef bytes start = b"".join(self.pieces)
        self.pieces[:] = [start]
        try:
            self._scan(start, True)
        except Incomplete:
            return 0  # the head is not complete yet
        except AmqpError as error:
            # Read to the end all the same: settling earlier would spoil the session's window.
            self.refusal = error
            self.pieces.clear()
            return 0
        self.pieces.clear()
        self.large_id = self.stock.new_message_id()
        return self._store_piece(start)

    cdef int _store_piece(self, bytes piece) except -1:
        self.commits.write.pieces.append((self.large_id, piece))
        return self.commits.note(PyBytes_GET_SIZE(piece))

    cdef int _drop_arriving(self) except -1:
        if self.large_id:
            self.stock.discard_large(self.large_id)
        return self._forget_arriving()

    cdef int _forget_arriving(self) except -1:
        self.pieces.clear()
        self.large_id = 0
        self.size_bytes = 0
        self.refusal = None
        self.ttl_s = self.expires_at_s = INFINITY
        self.priority = USUAL_PRIORITY
        self.to = None
        return 0

    cdef int _scan(self, bytes data, bint has_more) except -1:
        """Read ttl, expiry, priority and address.

        Raises AmqpError for a malformed message, Incomplete while more may come.
        """
        cdef Head head
        if not data:
            raise AmqpError("amqp:decode-error", "an empty delivery is not a message")
        if scan_head(<const unsigned char *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), &head) != WHOLE:
            if head.finding == CUT and not has_more:
                what = f"the message of {len(data)} bytes ends within its header sections"
                raise AmqpError("amqp:decode-error", what)
            if head.finding == CUT and len(data) > MOST_HEAD_BYTES:
                what = f"too many bytes before the body of the message: expected at most {MOST_HEAD_BYTES}"
                raise AmqpError("amqp:link:message-size-exceeded", what)
            raise fault_in(&head)
        if head.has_ttl and head.ttl_ms:
            self.ttl_s = head.ttl_ms / 1000.0
        if head.has_expiry:
            self.expires_at_s = head.expires_at_ms / 1000.0 - self.stock.wall_offset_s
        self.priority = min(head.priority, <int>MOST_URGENT)
        if self.address is None:
            self.to = scan(data).to
        return 0

    # Complete
    cdef int _on_complete(self, pn_delivery_t *delivery) except -1:
        cdef bytes body = None
        cdef list targets
        cdef HeldQueue held
        self._spend()
        try:
            if self.refusal is not None:
                raise self.refusal
            if pn.delivery_remote_state(delivery) == TRANSACTIONAL_STATE:
                raise AmqpError("amqp:not-implemented", "this broker does not support transactions")
            if not self.large_id:
                body = self._body()
                self._scan(body, False)
            targets = self._targets_now()
            for held in targets:
                self._refuse_when_full(held)
        except AmqpError as error:
            self._drop_arriving()
            if pn.delivery_settled(delivery):
                self._note_lost(error.condition)
            else:
                set_outcome(<size_t>delivery, Outcome(OutcomeCode.REJECTED, error))
            return self._settle(delivery)
        if not targets:
            self._drop_arriving()
            return self.settle_accepted(<size_t>delivery)
        return self._accept(delivery, body, targets)

    cdef int _refuse_when_full(self, HeldQueue held) except -1:
        """Raise AmqpError if a full queue takes no message, and credit could not hold the producer back."""
        if not held.is_limited or held is self.limited or held.has_room_for(self.size_bytes):
            return 0
        if held.policy.when_full in _SHEDDING:
            return 0
        what = (
            f"queue {held.address!r} is full: {held.queue.limited_count() + held.arriving_count} messages, "
            f"{held.queue.limited_bytes() + held.arriving_bytes} bytes, of at most {_limits_of(held)}"
        )
        raise AmqpError("amqp:resource-limit-exceeded", what)

    cdef int _spend(self) except -1:
        """A complete or aborted delivery uses up its credit."""
        self.credit_count -= 1
        if self.limited is not None:
            self.limited.promised -= 1
        return 0

    cdef bytes _body(self):
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    cdef list _targets_now(self):
        if self.queues is not None:
            return self.queues
        address = self.to if self.address is None else self.address
        if address is None:
            raise AmqpError("amqp:not-found", "expected an address in the link's target or the message's `to`")
        return self.targets(address)

    cdef int _accept(self, pn_delivery_t *delivery, bytes body, list targets) except -1:
        cdef _Written promise = _Written.__new__(_Written)
        promise.receiving, promise.targets = self, targets
        promise.message = self._message(targets)
        self._forget_arriving()
        self.stock.write(promise.message, body, targets)
        if pn.delivery_settled(delivery):
            pn.delivery_settle(delivery)
        else:
            promise.delivery = delivery
        return self.commits.promise_kept_by(promise)

    cdef QueuedMessage _message(self, list targets):
        cdef double until_s = min(self.stock.now + self.ttl_s, self.expires_at_s), most_s = INFINITY
        cdef HeldQueue held
        # Durable whatever the header says: accepted means kept, and most clients never set the header field.
        cdef bint is_stored = False
        cdef QueuedMessage message
        for held in targets:
            is_stored = is_stored or held.is_written_now()
            if held.row is None and not held.is_subscription:
                most_s = self.stock.now + _TEMPORARY_TTL_S
        message = QueuedMessage.__new__(QueuedMessage)
        message.message_id = self.large_id
        if not self.large_id:
            message.message_id = self.stock.new_message_id() if is_stored else self.stock.new_passing_id()
        message.size_bytes = self.size_bytes
        message.is_stored = is_stored
        message.is_large = self.large_id != 0
        message.priority = self.priority
        message.deadline_s = min(until_s, most_s)
        message.grace_s = 0 if until_s == INFINITY else until_s - message.deadline_s
        return message

    cdef int _on_written(self, pn_delivery_t *delivery, QueuedMessage message, list targets, double now) except -1:
        """The message is on disk, if its queues are durable: accept the delivery, unless pre-settled."""
        self.stock.on_written(message, targets, now)
        if self.is_over:
            return 0
        if delivery is not NULL:
            self.settle_accepted(<size_t>delivery)
        else:
            self.room += 1
        return self._top_up()

    cpdef int settle_accepted(self, size_t delivery) except -1:
        if not pn.delivery_settled(<pn_delivery_t *>delivery):
            pn.delivery_update(<pn_delivery_t *>delivery, ACCEPTED_STATE)
        return self._settle(<pn_delivery_t *>delivery)

    cdef int _settle(self, pn_delivery_t *delivery) except -1:
        """Settle, at once or after a producer that settles last has settled; then the credit returns."""
        if self.last_word is None or pn.delivery_settled(delivery) or not self.last_word.waits_for(
            <size_t>delivery, self.stock.now
        ):
            pn.delivery_settle(delivery)
            self.room += 1
        return self.link.endpoint.mark()

    cdef int _top_up(self) except -1:
        self._grant()
        return self._note_credit()

    cdef int _grant(self) except -1:
        cdef long granted
        # A flow frame per delivery would double the frames. The end of each sync calls this again.
        if self.room * 2 < _LINK_CREDIT:
            return 0
        if self.gate.holds_back(self):
            return 0
        granted = self.room if self.limited is None else self._grantable()
        if granted:
            self.link.grant_now(granted)
            self.credit_count += granted
            self.room -= granted
        return 0

    cdef long _grantable(self) except -1:
        """Grant half of the queue's free room, as other links grant too; the last place is for a link out of credit."""
        cdef HeldQueue held = self.limited
        cdef long long room = held.room()
        cdef long granted = <long>max(<long long>0, min(<long long>self.room, (room - held.promised) // 2))
        if granted == 0 and self.credit_count == 0 and room > 0:
            granted = 1
        if granted == 0:
            held.held_back[self] = None
            if self.credit_count == 0:
                self.waiting_since_s = min(self.waiting_since_s, self.stock.now)
            return 0
        self.waiting_since_s = INFINITY
        # Avoid a frame for each message; the credit left brings another call.
        if granted < self.credit_count:
            return 0
        held.promised += granted
        return granted

    # For the link log
    cdef int _note_credit(self) except -1:
        """The sender may have gained credit, or lost all."""
        if not self.record_level or self.is_over or self.link.is_gone:
            return 0
        if not self.has_moved:
            self.has_moved = True
            self.stock.recorder.note_moved(self)
        if not turn(&self.drought, self.link.credit_now() <= 0, self.stock.recorder.now_us):
            return 0
        if self.drought.is_on:
            self.waited_for = self._obstacle()
        if not self.is_restless:
            self.is_restless = True
            self.stock.recorder.note_restless(self)
        return 0

    cdef int _note_lost(self, str condition) except -1:
        """Count a refused pre-settled message, since the sender gets no outcome."""
        if not self.record_level:
            return 0
        if self.lost is None:
            self.lost = {}
            self.stock.recorder.note_restless(self)
        cause = "full_queue" if condition == "amqp:resource-limit-exceeded" else condition
        self.lost[cause] = self.lost.get(cause, 0) + 1
        return 0

    def take_lost(self):
        """Take the counts of refused pre-settled messages since the last call, by cause."""
        found, self.lost = self.lost, None
        return found or {}

    cdef str _obstacle(self):
        if self.limited is not None and self in self.limited.held_back:
            return "full_queue"
        return "memory" if self.gate.is_short_of_memory_now() else "disk"

    def rest(self):
        """The movement was recorded; the next one is news."""
        self.has_moved = False

    @property
    def credit(self):
        """Deliveries that the sender may still start."""
        return self.link.credit_now()

    @property
    def kept_count(self):
        """None: the link's messages are counted by their queues."""
        return None

    @property
    def moved_count(self):
        """Always 0: each delivery changes the credit instead."""
        return 0

    @property
    def starves(self):
        """Whether the sender is without credit, as far as recorded."""
        return self.record_level != 0 and self.drought.is_on

    def take_starved_us(self):
        """Microseconds the sender had no credit since the last call."""
        self.is_restless = False
        return take_us(&self.drought, self.stock.recorder.now_us) if self.record_level else 0

    @property
    def waits_for(self):
        """The reason why the sender has no credit, or had none the last time."""
        if self.drought.is_on or self.waited_for is None:
            self.waited_for = self._obstacle()
        return self.waited_for


cdef HeldQueue _blocking_one(list queues):
    """The queue that holds producers back when full; None if no queue does."""
    cdef HeldQueue held = queues[0] if queues else None
    if held is None or not held.is_limited:
        return None
    return held if held.policy.when_full is WhenFull.BLOCK else None


def _limits_of(HeldQueue held):
    limits = [f"{held.max_messages} messages"] if held.max_messages else []
    return " and ".join(limits + ([f"{held.max_bytes} bytes"] if held.max_bytes else []))

"""An incoming link of a broker: a producer's bytes become a message, accepted only once on disk.

Spec: AMQP 1.0 [2.6.7] flow control, [2.6.12] transfers in pieces, [2.6.14] aborted deliveries.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY

from broker.queueing.commit cimport Commits, Promise
from broker.links.second_settlement cimport SecondSettlement, SecondSettlements
from broker.queueing.message cimport QueuedMessage
from broker.queueing.held_queue cimport HeldQueue, LateMessage, QueueProducer
from broker.queueing.message_store cimport MessageStore
from broker.store.addressed cimport addressed
from wire.core cimport IncomingCore
from wire.delivery cimport pending_now
from wire.delivery_address cimport with_to
from wire.drought cimport Drought, take_us, turn
from wire.proton cimport ACCEPTED_STATE, RECEIVED_STATE, RELEASED_STATE, TRANSACTIONAL_STATE, pn, pn_delivery_t
from wire.sections cimport CUT, MOST_HEAD_BYTES, WHOLE, Head, fault_in, scan_head

from addressing.queue_policy import WhenFull
from wire.delivery import OutcomeCode, Outcome, set_outcome
from wire.errors import AmqpError, LinkError, LocalStateError
from wire.sections import Incomplete

LINK_CREDIT = 500
SHARED_LINK_CREDIT = 4000
LARGE_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
UNSYNCED_LIMIT_BYTES = 16 << 20
PINNED_LIMIT_BYTES = 256 << 20
LATE_LIMIT_BYTES = 64 << 20
TEMPORARY_TTL_S = 60.0

cdef enum:
    USUAL_PRIORITY = 4
    MOST_URGENT = 9

cdef tuple _SHEDDING = (WhenFull.DROP_OLDEST, WhenFull.DEAD_LETTER)
cdef long _LINK_CREDIT = LINK_CREDIT, _SHARED_LINK_CREDIT = SHARED_LINK_CREDIT
cdef size_t _LARGE_BYTES = LARGE_BYTES, _PIECE_BYTES = PIECE_BYTES
cdef long long _UNSYNCED_LIMIT_BYTES = UNSYNCED_LIMIT_BYTES, _PINNED_LIMIT_BYTES = PINNED_LIMIT_BYTES
cdef long long _LATE_LIMIT_BYTES = LATE_LIMIT_BYTES
cdef double _TEMPORARY_TTL_S = TEMPORARY_TTL_S


cdef class ProducerGate:
    """Holds all producers of a broker back while too many bytes wait for the disk, or are only in its memory.

    UNSYNCED_LIMIT_BYTES waiting for the disk, or PINNED_LIMIT_BYTES of bodies only in memory, are too many.
    A producer held back gets no credit, and its deliveries are not read. While the disk has little free space the gate
    holds back only producers whose messages would be stored, and producers in the middle of a large message.
    """

    def __init__(self, Commits commits not None, BodyCache body_cache not None):
        self.commits, self.body_cache = commits, body_cache
        self.waiting, self.waiting_for_room = {}, {}

    cdef bint is_shut_now(self) noexcept:
        if self.commits.unsynced_bytes >= _UNSYNCED_LIMIT_BYTES:
            return True
        return self.is_short_of_memory_now()

    cdef bint is_short_of_memory_now(self) noexcept:
        return self.body_cache.pinned_bytes >= _PINNED_LIMIT_BYTES

    @property
    def is_short_of_memory(self):
        return self.is_short_of_memory_now()

    cdef bint holds_back(self, BrokerReceiver receiving) except? True:
        """Whether a producer's link has to wait; if so, ``let_in`` calls ``go_on`` of the link once it may go on."""
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
        """Note whether the disk has little free space; if not, `let_in` lets producers that waited for space go on."""
        self.is_disk_low = is_low
        if not is_low:
            self.waiting.update(self.waiting_for_room)
            self.waiting_for_room.clear()

    def let_in(self):
        """Let one waiting producer go on and return True; False if no producer waits, or all are held back."""
        cdef BrokerReceiver receiving
        if not self.waiting or self.is_shut_now():
            return False
        receiving = next(iter(self.waiting))
        del self.waiting[receiving]
        receiving.go_on()
        receiving.on_let_in()
        return True


cdef class _Written(Promise):
    """A promise to put a message into its queues and accept its delivery, once its batch is on disk."""

    cdef BrokerReceiver receiving
    cdef pn_delivery_t *delivery  # NULL: pre-settled
    cdef QueuedMessage message
    cdef list targets

    cdef int keep(self, double now) except -1:
        return self.receiving._on_written(self.delivery, self.message, self.targets, now)


cdef class _Late(LateMessage):
    """A complete message from the link of a router that was told by the state `received` [3.4.1] that it is late."""

    cdef bint enter(self) except -1:
        return self.receiving._enter(self)

    cdef int give_back(self) except -1:
        return self.receiving._give_back(self)


cdef class BrokerReceiver(QueueProducer):
    """A producer's link: reads deliveries, stores their messages, accepts the deliveries, and grants credit.

    Always: ``credit_count + unsettled + room == link_credit``, where ``unsettled`` are the complete deliveries that
    await the disk or the producer's settlement, and a delivery still arriving counts as credit. Late messages count as
    nothing, so that messages to other queues go on: their number is limited by what their producers may send.

    ``limited`` is the queue that holds the producer back when full, and so limits the credit of this link, or None.
    """

    def __init__(self, IncomingCore link not None, address, queues, targets, fail, MessageStore message_store not None,
                 Commits commits not None, ProducerGate gate not None, resolve):
        """Put messages of ``link`` into ``queues``; if None, into the queues that ``targets`` returns for an address.

        ``targets`` takes the address in bytes, and raises AmqpError if no queue can take the message. ``fail(link,
        error, now)`` is to close a link whose peer broke a rule. ``resolve`` returns the BrokerAddress of an address,
        or None.
        """
        self.link, self.address, self.resolve = link, address, resolve
        self.target = None if address is None else address.encode()
        place = resolve(address) if address is not None and queues is None else None
        if place is not None:
            self.published = place.published
            self.fill = place.published if place.fills_to else None
        self.queues, self.targets, self.fail = queues, targets, fail
        self.message_store, self.commits, self.gate = message_store, commits, gate
        self.limited = _blocking_one(queues)
        # The queues of messages to a topic, or of a link without an address, are not known before each message: they
        # count as durable queues, whose producers wait while the disk is nearly full.
        self.is_for_disk = queues is None or any([(<HeldQueue>held).row is not None for held in queues])
        self.record_level = (<HeldQueue>queues[0]).record_level if queues else message_store.recorder.level
        # Many producers of a router share a link without an address.
        self.link_credit = _SHARED_LINK_CREDIT if address is None else _LINK_CREDIT
        self.room = self.link_credit
        self.pieces = []
        self._forget_arriving()

    def on_attached(self, double now):
        self.drought = Drought(True, self.message_store.recorder.now_us, 0)
        self._note_credit()
        self._top_up()

    def await_last_word(self, SecondSettlements last_words not None):
        """Settle each delivery only after its producer, which asked for rcv-settle-mode second. [2.8.3]

        On this link the broker waits no more once the producer did not settle in time.
        """
        self.last_word = SecondSettlement(last_words, self._on_no_last_word)

    def wait_when_full(self):
        """Keep messages to a full queue that blocks until it has room, since the sender is a router that knows of it.

        The router sends no more messages there over this link, once it hears that the queue has late messages.
        """
        self.late = {}

    def _on_no_last_word(self, deliveries):
        for delivery in deliveries:
            self._settle(<pn_delivery_t *><size_t>delivery)
        self._top_up()

    def end(self):
        """Stop the work for a producer's link that is gone: drop a delivery still arriving, and send no more outcomes.

        Messages of complete deliveries enter their queues all the same.
        """
        self.is_over = True
        self.gate.forget(self)
        if self.last_word is not None:
            self.last_word.end()
        if self.limited is not None:
            self.limited.promised -= self.credit_count
            self.limited.held_back.pop(self, None)
            self.message_store.with_room[self.limited] = None
        for late in list(self.late.values()) if self.late else ():
            self._take_out(late)
        self._drop_arriving()

    # Methods of wire.core.DeliveryOwner, called at events of the link.
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        return self.go_on()

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        # A router recalls a message by the outcome that it wants to hear.
        if self.late and pn.delivery_remote_state(delivery) == RELEASED_STATE and <size_t>delivery in self.late:
            self._give_back(self.late[<size_t>delivery])
            return self._top_up()
        if self.last_word is None or not pn.delivery_settled(delivery) or not self.last_word.is_given(<size_t>delivery):
            return 0
        self._settle(delivery)
        return self._top_up()

    cdef int on_flow_event(self) except -1:
        return 0

    # The message store calls this method of QueueProducer once a full queue may have room.
    cdef int on_room_in_queue(self) except -1:
        return 0 if self.is_over or self.link.is_gone else self._top_up()

    cdef int go_on(self) except -1:
        """Read the deliveries that have come over the link, unless the gate holds the producer back; then grant credit.

        A delivery without credit breaks the protocol's rules: the link is closed with an error. [2.8.18]
        """
        cdef pn_delivery_t *delivery
        while not self.is_over and not self.link.is_gone and not self.link.is_faulty():
            delivery = self.link.current_now()
            if delivery is NULL:
                break
            if self.gate.holds_back(self):
                # A producer held back is not read: unread deliveries fill the window of the session, so that the peer
                # has to stop sending.
                return self._note_credit()
            if not self.credit_count:
                what = f"the peer sent {self.link.excess} deliveries beyond its credit"
                self.fail(self.link, LinkError("amqp:link:transfer-limit-exceeded", what), self.message_store.now)
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

    # These methods read the delivery that is arriving.
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
            return 0  # the sections before the body are not complete yet
        except AmqpError as error:
            # The malformed message is rejected once it is read to the end: settling earlier would spoil the window of
            # the session.
            self.refusal = error
            self.pieces.clear()
            return 0
        self.pieces.clear()
        if self.queues is None:
            start = self._for_any_subscription(start)
        self.large_id = self.message_store.new_message_id()
        return self._store_piece(start)

    cdef int _store_piece(self, bytes piece) except -1:
        self.commits.write.pieces.append((self.large_id, piece))
        return self.commits.note(PyBytes_GET_SIZE(piece))

    cdef int _drop_arriving(self) except -1:
        if self.large_id:
            self.message_store.discard_large(self.large_id)
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
        """Read ttl, expiry, priority and address from the sections before the body in ``data``, a message's start.

        Raises AmqpError for a malformed message, and Incomplete if ``data`` ends within these sections while more
        bytes of the message are to come (``has_more``).
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
            self.expires_at_s = head.expires_at_ms / 1000.0 - self.message_store.wall_offset_s
        self.priority = min(head.priority, <int>MOST_URGENT)
        if self.target is None and head.to.size_bytes:
            self.to = data[head.to.start : head.to.start + head.to.size_bytes]
        return 0

    # These methods handle deliveries that have arrived completely.
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
            if self.queues is None and body is not None:
                body = self._for_subscriptions(body, targets)
            if self.late is not None and self._is_late(delivery, targets):
                return self._keep_late(delivery, body, targets)
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

    # Methods for messages to a full queue from a router that lets them wait here.
    cdef bint _is_late(self, pn_delivery_t *delivery, list targets) except -1:
        cdef HeldQueue held = targets[0] if targets else None
        if held is None or not held.blocks or pn.delivery_settled(delivery):
            return False
        return bool(held.late) or held.room() <= 0

    cdef int _keep_late(self, pn_delivery_t *delivery, bytes body, list targets) except -1:
        """Keep a late message; release it if all late messages of the broker have LATE_LIMIT_BYTES in memory already.

        A large message is on the disk.
        """
        cdef _Late late
        if body is not None and self.gate.late_bytes + PyBytes_GET_SIZE(body) > _LATE_LIMIT_BYTES:
            self._forget_arriving()
            pn.delivery_update(delivery, RELEASED_STATE)
            return self._settle(delivery)
        late = _Late.__new__(_Late)
        late.receiving, late.delivery, late.body, late.held = self, delivery, body, targets[0]
        late.message = self._message(targets)
        self._forget_arriving()
        if late.held.late is None:
            late.held.late = {}
        late.held.late[late] = None
        self.late[<size_t>delivery] = late
        self.gate.late_bytes += PyBytes_GET_SIZE(body) if body is not None else 0
        self.room += 1
        pn.delivery_update(delivery, RECEIVED_STATE)
        return self.link.endpoint.mark()

    cdef int _forget_late(self, _Late late) except -1:
        del late.held.late[late]
        del self.late[<size_t>late.delivery]
        self.gate.late_bytes -= PyBytes_GET_SIZE(late.body) if late.body is not None else 0
        self.room -= 1
        return 0

    cdef int _discard(self, _Late late) except -1:
        return self.message_store.discard_large(late.message.message_id) if late.message.is_large else 0

    cdef int _take_out(self, _Late late) except -1:
        """Drop a late message that will not enter its queue. Those behind may have waited for this link only."""
        self._forget_late(late)
        if not late.held.is_deleted:
            self.message_store.with_room[late.held] = None
        return self._discard(late)

    cdef int _give_back(self, _Late late) except -1:
        self._take_out(late)
        if not pn.delivery_settled(late.delivery):
            pn.delivery_update(late.delivery, RELEASED_STATE)
        return self._settle(late.delivery)

    cdef bint _enter(self, _Late late) except -1:
        """Have a late message written, or released if it has expired; False if the gate holds this link back."""
        cdef _Written promise
        if self.gate.holds_back(self):
            return False
        if late.message.deadline_s <= self.message_store.now:
            self._give_back(late)
            return True
        self._forget_late(late)
        if late.message.is_stored and not late.message.is_large:
            # Ids are in the order in which messages enter, as after a restart queues are in the order of ids.
            late.message.message_id = self.message_store.new_message_id()
        promise = _Written.__new__(_Written)
        promise.receiving, promise.delivery, promise.message = self, late.delivery, late.message
        promise.targets = [late.held]
        self.message_store.write(late.message, late.body, promise.targets)
        self.commits.promise_kept_by(promise)
        return True

    cdef int on_let_in(self) except -1:
        """Have late messages of this link looked at again, now that the gate lets the link go on."""
        cdef _Late late
        for late in self.late.values() if self.late else ():
            self.message_store.with_room[late.held] = None
        return 0

    cdef int _refuse_when_full(self, HeldQueue held) except -1:
        """Raise AmqpError, which rejects the message, if queue ``held`` is full and does not shed its oldest messages.

        Never raised for the queue ``limited``, which holds this producer back by credit instead, nor where messages to
        a full queue are late instead.
        """
        if self.late is not None and held.blocks:
            return 0
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
        """Count one credit of the producer as used, by a complete or aborted delivery."""
        self.credit_count -= 1
        if self.limited is not None:
            self.limited.promised -= 1
        return 0

    cdef bytes _body(self):
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    cdef list _targets_now(self):
        if self.queues is not None:
            return self.queues
        cdef bytes address = self.to if self.target is None else self.target
        if address is None:
            raise AmqpError("amqp:not-found", "expected an address in the link's target or the message's `to`")
        cdef HeldQueue held = self.message_store.used.queue_at(address, self.message_store.now)
        if held is not None:
            return [held]
        cdef list found = self.message_store.published.subscriptions_of(address)
        return self.targets(address) if found is None else found

    # Methods for messages to topics: the address goes into the message once, whatever the number of subscriptions.
    cdef bytes _for_subscriptions(self, bytes body, list targets):
        """Return the body to store: addressed if a target has wildcards, and with `to` if the topic fills it in."""
        cdef HeldQueue held
        cdef bytes stored = body
        if self.fill is not None:
            stored = with_to(stored, self.fill)
        if self.message_store.wildcard_count:
            for held in targets:
                if held.has_wildcards:
                    stored = addressed(stored, self._published_now())
                    break
        if stored is not body:
            self.size_bytes = PyBytes_GET_SIZE(stored)
        return stored

    cdef bytes _for_any_subscription(self, bytes start):
        """Return the first piece to store of a large message, whose targets are not known before its end.

        The message is addressed if any subscription of the broker has wildcards, whether its filter matches or not.
        """
        cdef bytes published, stored = start
        if self.fill is not None:
            stored = with_to(stored, self.fill)
        if self.message_store.wildcard_count:
            published = self._published_now()
            if published is not None:
                stored = addressed(stored, published)
        self.size_bytes += PyBytes_GET_SIZE(stored) - PyBytes_GET_SIZE(start)
        return stored

    cdef bytes _published_now(self):
        """Return the address of the topic to which the message is published; None for a queue or an unknown address."""
        cdef bytes name
        if self.address is not None:
            return self.published
        if self.to is None:
            return None
        name = self.message_store.published.name_of(self.to)
        if name is not None:
            return name
        place = self.resolve(self.to.decode())
        return None if place is None else place.published

    cdef int _accept(self, pn_delivery_t *delivery, bytes body, list targets) except -1:
        cdef _Written promise = _Written.__new__(_Written)
        promise.receiving, promise.targets = self, targets
        promise.message = self._message(targets)
        self._forget_arriving()
        self.message_store.write(promise.message, body, targets)
        if pn.delivery_settled(delivery):
            pn.delivery_settle(delivery)
        else:
            promise.delivery = delivery
        return self.commits.promise_kept_by(promise)

    cdef QueuedMessage _message(self, list targets):
        cdef double until_s = min(self.message_store.now + self.ttl_s, self.expires_at_s), most_s = INFINITY
        cdef HeldQueue held
        # A message to a durable queue is stored whatever its header says of durability: an accepted message must not be
        # lost, and most clients never set this field.
        cdef bint is_stored = False
        cdef QueuedMessage message
        for held in targets:
            is_stored = is_stored or held.is_written_now()
            if held.row is None and not held.is_subscription:
                most_s = self.message_store.now + _TEMPORARY_TTL_S
        message = QueuedMessage.__new__(QueuedMessage)
        message.message_id = self.large_id
        if not self.large_id:
            message.message_id = (
                self.message_store.new_message_id() if is_stored else self.message_store.new_passing_id()
            )
        message.size_bytes = self.size_bytes
        message.is_stored = is_stored
        message.is_large = self.large_id != 0
        message.priority = self.priority
        message.deadline_s = min(until_s, most_s)
        message.grace_s = 0 if until_s == INFINITY else until_s - message.deadline_s
        return message

    cdef int _on_written(self, pn_delivery_t *delivery, QueuedMessage message, list targets, double now) except -1:
        """Let a message whose batch is on disk into its queues ``targets``; accept its delivery unless pre-settled."""
        self.message_store.on_written(message, targets, now)
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
        """Settle a delivery that has an outcome, and count one credit more as free to be granted to the producer.

        The broker settles at once or, for a producer that asked to settle first, after the producer.
        """
        if self.last_word is None or pn.delivery_settled(delivery) or not self.last_word.waits_for(
            <size_t>delivery, self.message_store.now
        ):
            pn.delivery_settle(delivery)
            self.room += 1
        return self.link.endpoint.mark()

    cdef int _top_up(self) except -1:
        self._grant()
        return self._note_credit()

    cdef int _grant(self) except -1:
        cdef long granted
        # Credit is granted in steps of half of the link's credit: a flow frame for each delivery would double the
        # frames. The end of each sync of the disk calls this method again.
        if self.room * 2 < self.link_credit:
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
        """Return the credit to grant now: up to half of the room in queue ``limited`` for which no producer has credit.

        A link without credit gets one as long as the queue has any room. With no credit to grant, the queue calls
        `on_room_in_queue` once there is room.
        """
        cdef HeldQueue held = self.limited
        cdef long long room = 0 if held.late else held.room()
        cdef long granted = <long>max(<long long>0, min(<long long>self.room, (room - held.promised) // 2))
        if granted == 0 and self.credit_count == 0 and room > 0:
            granted = 1
        if granted == 0:
            held.held_back[self] = None
            if self.credit_count == 0:
                self.waiting_since_s = min(self.waiting_since_s, self.message_store.now)
            return 0
        self.waiting_since_s = INFINITY
        # Less credit than the producer has left is not granted yet, to avoid a flow frame for each message: the next
        # delivery with the credit left brings another call.
        if granted < self.credit_count:
            return 0
        held.promised += granted
        return granted

    # The next methods are for the link log, which records the changes that they note.
    cdef int _note_credit(self) except -1:
        """Have the link log record the link this second, and note when the producer's credit ended or came."""
        if not self.record_level or self.is_over or self.link.is_gone:
            return 0
        if not self.has_moved:
            self.has_moved = True
            self.message_store.recorder.note_moved(self)
        if not turn(&self.drought, self.link.credit_now() <= 0, self.message_store.recorder.now_us):
            return 0
        if self.drought.is_on:
            self.waited_for = self._obstacle()
        if not self.is_restless:
            self.is_restless = True
            self.message_store.recorder.note_restless(self)
        return 0

    cdef int _note_lost(self, str condition) except -1:
        """Count a refused pre-settled message by cause for the link log, since its sender gets no outcome."""
        if not self.record_level:
            return 0
        if self.lost is None:
            self.lost = {}
            self.message_store.recorder.note_restless(self)
        cause = "full_queue" if condition == "amqp:resource-limit-exceeded" else condition
        self.lost[cause] = self.lost.get(cause, 0) + 1
        return 0

    def take_lost(self):
        """Return the numbers of pre-settled messages refused since the last call, by cause."""
        found, self.lost = self.lost, None
        return found or {}

    cdef str _obstacle(self):
        if self.limited is not None and self in self.limited.held_back:
            return "full_queue"
        return "memory" if self.gate.is_short_of_memory_now() else "disk"

    def rest(self):
        """Report the link's next change of credit to the recorder again; called when the link log has noted the last.
        """
        self.has_moved = False

    @property
    def credit(self):
        """Number of deliveries that the producer may still start: the link's credit."""
        return self.link.credit_now()

    @property
    def kept_count(self):
        """None, for the link log: a producer's link keeps no deliveries of its own, since queues have the messages."""
        return None

    @property
    def moved_count(self):
        """Always 0 as the link log's number of deliveries: for a producer's link they show as changes of the credit."""
        return 0

    @property
    def starves(self):
        """Whether the producer is without credit; False if the link log does not record the link."""
        return self.record_level != 0 and self.drought.is_on

    def take_starved_us(self):
        """Return the microseconds without credit of the producer since the last call; 0 for a link not recorded."""
        self.is_restless = False
        return take_us(&self.drought, self.message_store.recorder.now_us) if self.record_level else 0

    @property
    def waits_for(self):
        """The reason why the producer has no credit, or last had none: full_queue, memory or disk."""
        if self.drought.is_on or self.waited_for is None:
            self.waited_for = self._obstacle()
        return self.waited_for


cdef HeldQueue _blocking_one(list queues):
    """Return the queue of a producer's link if its policy is to hold producers back when it is full; else None."""
    cdef HeldQueue held = queues[0] if queues else None
    if held is None or not held.is_limited:
        return None
    return held if held.policy.when_full is WhenFull.BLOCK else None


def _limits_of(HeldQueue held):
    limits = [f"{held.max_messages} messages"] if held.max_messages else []
    return " and ".join(limits + ([f"{held.max_bytes} bytes"] if held.max_bytes else []))

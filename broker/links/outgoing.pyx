"""An outgoing link of a broker: messages go from a queue to a consumer, and outcomes back to queue and disk.

Spec: AMQP 1.0 [2.6.7] flow control and drain, [2.6.12] settlement, [3.4] outcomes.

    queue --take--> outbox --pump--> current --> unsettled --judged--> queue, and once on disk: settled

An entry that the queue gave waits in the outbox, is written as ``current``, and is then ``unsettled`` until the
consumer gives an outcome. The engine gets only bytes that can be written now; a body that is not in memory is fetched
from the store meanwhile.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY

from broker.queueing.commit cimport Promise
from broker.queueing.message cimport QueueEntry, QueuedMessage
from broker.queueing.body_cache cimport Fetch
from broker.queueing.held_queue cimport QueueTaker
from broker.store.addressed cimport ADDRESSED, CUT_LEAD, PLAIN, as_published, lead_bytes
from wire.delivery cimport copy_state, is_terminal
from wire.proton cimport ACCEPTED_STATE, pn
from wire.sections cimport limit_ttl

from collections import deque

from broker.queueing.action import SettlementVerdict
from broker.store.batch import BodyRange
from wire.annotations import with_annotations, with_encoded
from wire.delivery import remote_outcome
from wire.header import with_header
from wire.link import SEND_SETTLED
from wire.outcome import OutcomeCode

cdef enum:
    OUTBOX_DELIVERIES = 100
    CHUNK_BYTES = 32768
    READ_AHEAD_BYTES = 262144
    REFILL_BYTES = 131072
    TAG_BYTES = 8

cdef object _ACCEPTED = SettlementVerdict.ACCEPTED, _RELEASED = SettlementVerdict.RELEASED, _FAILED = SettlementVerdict.FAILED


@cython.freelist(256)
cdef class OutgoingEntry:
    """A queue entry on its way to a consumer, with the part of its body that is in memory and not written to the link.

    ``pieces`` has this part; only the first ``at`` bytes of its first piece are written already, or are no part of the
    message.
    """

    def __cinit__(self, QueueEntry entry):
        self.entry = entry
        self.pieces = []

    cdef bint is_fetched(self) noexcept:
        return self.fetched_bytes >= self.entry.message.size_bytes

    cdef int add(self, bytes body) except -1:
        """Add the next bytes of the body: all of a small body, or at most READ_AHEAD_BYTES of a large body."""
        cdef bint is_start = self.fetched_bytes == 0 or self.cut is not None
        self.fetched_bytes += PyBytes_GET_SIZE(body)
        if is_start:
            return self._add_start(body)
        self.pieces.append(body)
        self.ready_bytes += PyBytes_GET_SIZE(body)
        return 0

    cdef int _add_start(self, bytes body) except -1:
        """Add the first bytes: without the lead of an addressed body, and with the message's history at this broker."""
        cdef Py_ssize_t lead = PLAIN, stored_bytes
        cdef bint has_history = (
            self.entry.delivery_count or self.entry.cause is not None or self.annotations is not None
        )
        if self.cut is not None:
            body, self.cut = self.cut + body, None
        stored_bytes = PyBytes_GET_SIZE(body)
        if PyBytes_AS_STRING(body)[0] == ADDRESSED:
            lead = lead_bytes(body)
            if lead == CUT_LEAD and not self.is_fetched():
                self.cut = body
                return 0
        if lead > 0 and self.is_exact:
            body, lead = as_published(body), 0
        elif lead > 0 and has_history:
            body, lead = body[lead:], 0
        if has_history:
            body = _as_it_is_now(body, self.entry, self.annotations)
        self.at = max(lead, 0)
        self.added_bytes = PyBytes_GET_SIZE(body) - stored_bytes - <Py_ssize_t>self.at
        self.pieces.append(body)
        self.ready_bytes += PyBytes_GET_SIZE(body) - self.at
        return 0


cdef class _Body(Fetch):
    """A read from the store of the next bytes of the body of an entry on its way to a consumer."""

    cdef BrokerSender sending
    cdef OutgoingEntry parcel

    cdef int arrive(self, bytes body, double now) except -1:
        cdef BrokerSender sending = self.sending
        self.parcel.is_fetching = False
        self.parcel.add(body)
        sending.message_store.release(self.parcel.entry.message)
        sending.message_store.to_pump[sending] = None
        return 0

    cdef int fail(self, double now) except -1:
        self.sending._give_up(self.parcel, now)
        return self.sending.message_store.release(self.parcel.entry.message)

    @property
    def address(self):
        return self.sending.held.address


cdef class _Concluded(Promise):
    """A promise to settle a consumer's delivery once the changes by its outcome are on disk."""

    cdef BrokerSender sending
    cdef pn_delivery_t *delivery
    cdef unsigned long long serial

    cdef int keep(self, double now) except -1:
        return self.sending._settle_synced(self.delivery, self.serial)


cdef class BrokerSender(QueueTaker):
    """A consumer's or browser's link: takes entries from one queue, sends their messages, and handles the outcomes.

    Always: the queue's credit for the link is the peer's credit, less deliveries in the outbox or being written, and at
    most OUTBOX_DELIVERIES less those in the outbox

    ``unsettled`` are complete deliveries without an outcome, ``unconfirmed`` deliveries with an outcome not on disk
    yet. ``on_too_large(link, size, now)`` is called to end the link, when all waiting messages are too large for the
    peer. [2.7.3]
    """

    def __init__(
        self, OutgoingCore link not None, HeldQueue held not None, MessageStore message_store not None,
        BodyCache body_cache not None, Commits commits not None, on_too_large, *, bint is_browser
    ):  # fmt: skip
        self.on_too_large = on_too_large
        self.link, self.held = link, held
        self.message_store, self.body_cache, self.commits = message_store, body_cache, commits
        self.consumer_id = message_store.new_consumer_id()
        self.is_browser = is_browser
        self.is_exact = held.is_subscription and not held.has_wildcards
        self.outbox = deque()
        self.unsettled, self.unconfirmed = {}, {}
        self.record_level = held.record_level

    @property
    def address(self):
        return self.held.address

    def on_attached(self, double now):
        self.is_settled = self.link.remote_settle_modes[0] == SEND_SETTLED
        self.most_bytes = self.link.remote_max_message_bytes
        self.held.add_consumer(self)
        if self.is_browser:
            self.held.queue.attach_browser(self.consumer_id, self.most_bytes)
        else:
            self.held.queue.attach(self.consumer_id, self.most_bytes)
        self.is_attached = True
        self._note_move()
        self.pump(now)

    def end(self, double now, *, bint is_orderly=False):
        """End the deliveries of a consumer's link: the queue takes back all entries without an outcome.

        The delivery-counts of entries that were written rise, unless the consumer left ``is_orderly``: then they count
        as never tried. Call before the link is freed.
        """
        if self.is_over:
            return
        self.is_over = True
        if self.current is not None:
            if not self.link.is_gone:
                self.link.abort_now(self.delivery)
            self.message_store.release(self.current.entry.message)
            self.current = None
        unwritten = [(<OutgoingEntry>parcel).entry for parcel in self.outbox]
        self.outbox.clear()
        self.held.drop_consumer(self)
        if self.record_level:
            self.held.note_change()
        self.message_store.carry_out(self.held, self.held.queue.detach(self.consumer_id, unwritten, now, is_orderly))
        for entry in unwritten:
            self.message_store.release((<QueueEntry>entry).message)
        if self.held.queue.choosy_count:
            # Perhaps no other consumer takes messages as large as the consumer that left: each other link checks this
            # when it is pumped.
            self.message_store.to_pump.update(dict.fromkeys(self.held.consumers.values()))

    # The message store calls these methods of QueueTaker.
    cdef int take(self, QueueEntry entry) except -1:
        """Put an entry that the queue gave to this consumer into the outbox; fetch a small body not in memory."""
        cdef OutgoingEntry parcel = OutgoingEntry(entry)
        parcel.is_exact = self.is_exact
        parcel.annotations = self.message_store.annotated.get(self.held, entry.message.message_id)
        if self.record_level:
            self.held.note_change()
        self.outbox.append(parcel)
        if entry.message.body is not None:
            parcel.add(entry.message.body)
        elif not entry.message.is_large:
            self._fetch(parcel)
        self.message_store.to_pump[self] = None
        return 0

    cdef int pump(self, double now) except -1:
        """Write as much as possible to the link, and ask the queue for as much as the link's credit allows.

        A drain is answered if nothing is left to send. A link is ended if all waiting messages are too large for it.
        """
        # Nothing is written before the link is opened: the link to a durable subscription is opened once the
        # subscription is on disk, and pumped again then.
        if self.is_over or not self.is_attached or self.link.is_gone:
            return 0
        self.credit_count = self.link.credit_now()
        while self._write_next(now):
            pass
        self._tell_credit(now)
        if self.most_bytes and self._tell_if_too_large(now):
            return 0
        if self.credit_count > 0 and pn.link_get_drain(self.link.raw) and self._is_dry(now):
            self.link.drained()
            self.credit_count = 0
            self._tell_credit(now)
        return 0

    # Methods of wire.core.DeliveryOwner, called at events of the link.
    cdef int on_room(self) except -1:
        self.message_store.to_pump[self] = None
        return 0

    cdef int on_flow_event(self) except -1:
        if not self.is_over:
            self.message_store.to_pump[self] = None
            self._note_move()
        return 0

    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        return 0

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        """Handle an outcome or settlement of the consumer: at once, or once the delivery is completely written."""
        if self.is_over:
            return 0
        if self.current is not None and self.delivery is delivery:
            self.is_current_judged = True  # `_finish` handles the outcome
            return 0
        return self._judge(delivery, self.message_store.now)

    # The next methods are for the link log, which records the changes that they note.
    cdef int _note_move(self) except -1:
        """Have the link log record deliveries and credit of the link this second, since they may have changed."""
        if self.record_level and not self.has_moved:
            self.has_moved = True
            self.message_store.recorder.note_moved(self)
        return 0

    def rest(self):
        """Note that the link log has recorded the link, so that its next change is to be recorded, too."""
        self.has_moved = False

    @property
    def credit(self):
        """Number of deliveries that the credit of the consumer still allows, as of the last `pump`."""
        return self.credit_count

    @property
    def kept_count(self):
        """Number of deliveries sent completely and without an outcome; 0 for a browser, which holds no message."""
        return 0 if self.is_browser else len(self.unsettled)

    # Writing
    cdef bint _write_next(self, double now) except -1:
        """Write one chunk of the next message to the link, or return an expired or too large one to the queue.

        Return False if no more can be written now.
        """
        cdef OutgoingEntry parcel = self.current
        if parcel is None:
            if not self.outbox or self.credit_count <= 0:
                return False
            parcel = self.outbox[0]
            if parcel.entry.is_past(now):
                return self._drop_expired(parcel, now)
            if self.most_bytes and self._is_too_large(parcel):
                return self._refuse(parcel, now) == 0
        if parcel.ready_bytes <= REFILL_BYTES and not parcel.is_fetched():
            self._fetch(parcel)
        if not parcel.pieces:
            return False
        if not self.link.is_writable_now():
            self.link.endpoint.wait(self)
            return False
        if self.current is None:
            self._start()
        self._write_chunk(parcel)
        if parcel.is_fetched() and not parcel.pieces:
            self._finish(now)
        return True

    cdef int _write_chunk(self, OutgoingEntry parcel) except -1:
        cdef bytes piece = parcel.pieces[0]
        cdef size_t size = min(<size_t>PyBytes_GET_SIZE(piece) - parcel.at, <size_t>CHUNK_BYTES)
        self.link.send_now(PyBytes_AS_STRING(piece) + parcel.at, size)
        parcel.at += size
        parcel.ready_bytes -= size
        if parcel.at == <size_t>PyBytes_GET_SIZE(piece):
            del parcel.pieces[0]
            parcel.at = 0
        return 0

    cdef bint _drop_expired(self, OutgoingEntry parcel, double now) except -1:
        """Return the first entry of the outbox to its queue, to expire there: its deadline passed in the outbox."""
        self.outbox.popleft()
        self._conclude(parcel.entry, _RELEASED, False, now)
        self.message_store.release(parcel.entry.message)
        return True

    cdef int _tell_time_left(self, OutgoingEntry parcel) except -1:
        """Lower the ttl in the header of a message about to be sent to the time left until it expires. [3.2.1]"""
        cdef QueuedMessage message = parcel.entry.message
        cdef double left_ms = (message.deadline_s + message.grace_s - self.message_store.now) * 1000
        cdef bytes first = parcel.pieces[0]
        cdef bytes told = PyBytes_FromStringAndSize(PyBytes_AS_STRING(first), PyBytes_GET_SIZE(first))
        if left_ms >= 0xFFFFFFFF:
            return 0
        cdef unsigned char *start = <unsigned char *>PyBytes_AS_STRING(told) + parcel.at
        if limit_ttl(start, PyBytes_GET_SIZE(told) - parcel.at, max(1, <long long>left_ms)):
            parcel.pieces[0] = told
        return 0

    cdef int _start(self) except -1:
        cdef char tag[TAG_BYTES]
        cdef int place
        cdef OutgoingEntry parcel = self.outbox[0]
        if parcel.entry.cause is None and parcel.entry.message.deadline_s != INFINITY:
            self._tell_time_left(parcel)
        self.next_tag += 1
        for place in range(TAG_BYTES):
            tag[place] = <char>(self.next_tag >> (8 * (TAG_BYTES - 1 - place)) & 0xFF)
        self.current = self.outbox.popleft()
        self.delivery = self.link.start_now(tag, TAG_BYTES)
        return 0

    cdef int _finish(self, double now) except -1:
        cdef pn_delivery_t *delivery = self.delivery
        cdef QueueEntry entry = self.current.entry
        self.link.finish_now()
        self.credit_count -= 1
        self.moved_count += 1
        self._note_move()
        self.current = None
        self.message_store.release(entry.message)
        if self.is_settled:
            # For a consumer that wants pre-settled deliveries the message is written to the link, then deleted on disk.
            # A crash in between may deliver the message again, but never loses a message that was not sent.
            pn.delivery_settle(delivery)
            return self._conclude(entry, _ACCEPTED, False, now)
        self.unsettled[<size_t>delivery] = entry
        if self.is_current_judged:
            self.is_current_judged = False
            self._judge(delivery, now)
        return 0

    cdef int _fetch(self, OutgoingEntry parcel) except -1:
        cdef QueuedMessage message = parcel.entry.message
        cdef _Body fetch
        if parcel.is_fetching:
            return 0
        parcel.is_fetching = True
        size_bytes = message.size_bytes
        if message.is_large:
            size_bytes = min(<size_t>READ_AHEAD_BYTES, message.size_bytes - parcel.fetched_bytes)
        fetch = _Body.__new__(_Body)
        fetch.sending, fetch.parcel = self, parcel
        fetch.wanted = BodyRange(message.message_id, message.is_large, parcel.fetched_bytes, size_bytes,
                                 self.consumer_id)
        # The read counts as a use of the body, which must not be deleted during the read, even if the entry is
        # archived.
        message.references += 1
        return self.body_cache.fetch(fetch)

    cdef int _give_up(self, OutgoingEntry parcel, double now) except -1:
        """Drop or abort the delivery of a message with a damaged body, which the queue keeps and gives to nobody."""
        if self.is_over or (parcel is not self.current and parcel not in self.outbox):
            return 0
        if parcel is self.current:
            self.link.abort_now(self.delivery)
            self.link.endpoint.mark()
            self.current = None
        else:
            self.outbox.remove(parcel)
        if not self.is_browser and not self.held.is_deleted:
            self.message_store.carry_out(self.held, self.held.queue.set_aside(self.consumer_id, parcel.entry, now))
        self.message_store.to_pump[self] = None
        return self.message_store.release(parcel.entry.message)

    cdef int _tell_credit(self, double now) except -1:
        cdef long waiting = len(self.outbox)
        cdef long free = self.credit_count - waiting - (self.current is not None)
        cdef long credit = max(0, min(free, OUTBOX_DELIVERIES - waiting))
        self.message_store.carry_out(self.held, self.held.queue.set_credit(self.consumer_id, credit, now))
        if free < 0 and not self.is_browser and not self.held.is_deleted:
            self._give_back(-free, now)
        return 0

    cdef bint _is_too_large(self, OutgoingEntry parcel) noexcept:
        return parcel.added_bytes and parcel.entry.message.size_bytes + parcel.added_bytes > self.most_bytes

    cdef int _refuse(self, OutgoingEntry parcel, double now) except -1:
        """Return the outbox's first entry to its queue: with its history, its message is too large for this link.

        From then on the queue gives the entry to other links only.
        """
        self.outbox.popleft()
        self.refused_bytes = parcel.entry.message.size_bytes + parcel.added_bytes
        self._conclude(parcel.entry, _RELEASED, True, now)
        return self.message_store.release(parcel.entry.message)

    cdef int _tell_if_too_large(self, double now) except -1:
        """End a link with credit and without deliveries if all waiting messages are too large; return 1 if ended.

        The link stays while another consumer of the queue takes larger messages, unless it was only the history of a
        message that made it too large.
        """
        cdef size_t size
        if self.credit_count <= 0 or self.outbox or self.current is not None or self.unsettled or self.unconfirmed:
            return 0
        size = self.held.queue.refused_by(self.consumer_id, now)
        if not size and self.refused_bytes and self.held.queue.available_count:
            size = self.refused_bytes if self.held.queue.is_dry_for(self.consumer_id, now) else 0
        if not size:
            return 0
        self.on_too_large(self.link, size, now)
        return 1

    cdef int _give_back(self, long count, double now) except -1:
        """Return the last ``count`` entries of the outbox to their queue, as the peer took back its credit for them."""
        parcels = [self.outbox.pop() for _ in range(min(count, len(self.outbox)))]
        for parcel in reversed(parcels):
            self._conclude((<OutgoingEntry>parcel).entry, _RELEASED, False, now)
            self.message_store.release((<OutgoingEntry>parcel).entry.message)
        return 0

    cdef bint _is_dry(self, double now) except -1:
        return not self.outbox and self.current is None and self.held.queue.is_dry_for(self.consumer_id, now)

    # Outcomes
    cdef int _judge(self, pn_delivery_t *delivery, double now) except -1:
        cdef bint is_settled = pn.delivery_settled(delivery), shun = False
        cdef size_t state = pn.delivery_remote_state(delivery)
        cdef object verdict = _ACCEPTED
        cdef QueueEntry entry = self.unsettled.get(<size_t>delivery)
        if entry is None:
            if is_settled and self.unconfirmed.pop(<size_t>delivery, None) is not None:
                pn.delivery_settle(delivery)
            return 0
        if not is_settled and not is_terminal(state):
            return 0
        if state != ACCEPTED_STATE:
            outcome = remote_outcome(<size_t>delivery)
            verdict, shun = _read(outcome)
            if outcome is not None and outcome.annotations and not self.is_browser and not self.held.is_deleted:
                self.message_store.annotated.add(self.held, entry.message, outcome.annotations)
        del self.unsettled[<size_t>delivery]
        self._note_move()
        if is_settled:
            pn.delivery_settle(delivery)
        self._conclude(entry, verdict, shun, now)
        if self.most_bytes and not self.unsettled:
            self.message_store.to_pump[self] = None
        return 0 if is_settled else self._confirm(delivery)

    cdef int _conclude(self, QueueEntry entry, object verdict, bint shun, double now) except -1:
        if self.is_browser or self.held.is_deleted:
            return 0
        if self.record_level:
            self.held.note_change()
        settled = self.held.queue.settle(self.consumer_id, entry, verdict, now, shun)
        return self.message_store.carry_out(self.held, settled)

    cdef int _confirm(self, pn_delivery_t *delivery) except -1:
        """Settle a delivery with an outcome once the changes by the outcome are on disk; at once if there are none."""
        cdef _Concluded promise = _Concluded.__new__(_Concluded)
        self.next_tag += 1
        self.unconfirmed[<size_t>delivery] = self.next_tag
        promise.sending, promise.delivery, promise.serial = self, delivery, self.next_tag
        return self.commits.promise_kept_by(promise)

    cdef int _settle_synced(self, pn_delivery_t *delivery, unsigned long long serial) except -1:
        # The engine reuses the memory of deliveries: only if the serial is still known is this still the same delivery.
        if self.is_over or self.unconfirmed.get(<size_t>delivery) != serial:
            return 0
        del self.unconfirmed[<size_t>delivery]
        if is_terminal(pn.delivery_remote_state(delivery)):
            copy_state(delivery, delivery)
        pn.delivery_settle(delivery)
        if self.most_bytes:
            self.message_store.to_pump[self] = None
        return self.link.endpoint.mark()


def _as_it_is_now(bytes body, QueueEntry entry, bytes annotations):
    """Return an encoded message with its history at this broker in header and message-annotations. [3.2.1, 3.2.3]

    The history is the delivery-count, the cause of a move to this queue, and annotations added by consumers.
    """
    if annotations is not None:
        body = with_encoded(body, annotations)
    if entry.cause is None:
        return with_header(body, delivery_count=entry.delivery_count)
    body = with_header(body, delivery_count=entry.delivery_count, ttl_s=None)
    return with_annotations(body, entry.cause.annotations())


def _read(outcome):
    """Return (verdict for the queue, undeliverable-here) of a consumer's outcome, which may be None.

    A delivery settled without an outcome is in doubt and counts as FAILED, as if the link had broken.
    """
    if outcome is None:
        return SettlementVerdict.FAILED, False
    if outcome.kind is OutcomeCode.ACCEPTED:
        return SettlementVerdict.ACCEPTED, False
    if outcome.kind is OutcomeCode.REJECTED:
        return SettlementVerdict.REJECTED, False
    if outcome.kind is OutcomeCode.MODIFIED:
        return SettlementVerdict.FAILED if outcome.delivery_failed else SettlementVerdict.RELEASED, outcome.undeliverable_here
    return SettlementVerdict.RELEASED, False

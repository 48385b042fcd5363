"""Anonymous producers: links without a target address, on which every message names its address in `to`.
[ANONYMOUS-RELAY]

An anonymous producer gets credit, whatever credit its addresses' takers have. Complete messages are read out and wait
in a list for each address, so a waiting message holds up no message for another address; order holds per address.
Waiting messages count in the node's budget of copies (`copies`); messages beyond the budget are RELEASED. Messages for
an address whose takers stand still (`stalls`) are RELEASED, too, since they would use up the credit for other
addresses. A message that is not complete at 64 KiB streams from the link, and later messages wait behind it.

Addresses of a declared pattern may share a group, and so an inlet and a list: then ``patterns`` remembers the pattern
of each address, for all producers of the user. When a broker says that a message of the producer waits at its full
queue (`Move._on_late`), the address is set apart: its next messages wait in the group of the address itself, which has
links of its own, until all earlier ones were settled. Once nothing of the address is under way for a while, the next
message shares links again.

Addresses of an anycast pattern whose consumers are all at one egress share the circuit to this egress
(`router.forwarding.shared_anycast`): ``shares`` remembers the group for each address. Such an address is set apart when
too much of it waits at the egress, when its consumers come to be elsewhere, when a delivery of it comes back, and for a
large or pre-settled message. Its next messages then wait for a barrier on the shared circuit, not for outcomes.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from router.forwarding.address cimport AddressGroup
from router.forwarding.anycast cimport Anycast
from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Inlet, Taker, carrier_at
from router.forwarding.guard cimport Guard
from router.forwarding.head cimport ReturnMark, insert_returned, release
from router.forwarding.move cimport Move
from router.forwarding.recall cimport ask_back
from router.forwarding.shared_anycast cimport SharedAnycast
from router.forwarding.stalls cimport SharedCreditInlet, Stalls
from wire.address_cache cimport AddressCache
from wire.core cimport CHUNK_BYTES, DeliveryOwner, IncomingCore, scratch
from wire.delivery cimport pending_now
from wire.proton cimport REJECTED_STATE, RELEASED_STATE, pn, pn_delivery_t
from recording.records cimport ABORTED, Recorder
from wire.sections cimport CUT, MOST_HEAD_BYTES, WHOLE, Head, fault_in, scan_head

from addressing.address import normalize
from wire.delivery import rejected, set_outcome
from wire.errors import AmqpError

cdef enum:
    # When a producer has this many inlets, one for each address that it used, its idle inlets are forgotten.
    MANY_INLETS = 1000
    # The most values of `to` in a producer's dict from such a value to its inlet, which saves looking up the address. A
    # full dict is cleared.
    MANY_SPELLINGS = 4000
    LONG_SPELLING_BYTES = 1024

# The time in s after which an address that was set apart, and of which nothing is under way, shares links again.
cdef double APART_S = 5.0


cdef bytes _to_in(bytes message):
    """Return the bytes of `to` of a message whose properties are known to be whole."""
    cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
    cdef Head head
    scan_head(raw, PyBytes_GET_SIZE(message), &head)
    return PyBytes_FromStringAndSize(<const char *>raw + head.to.start, head.to.size_bytes)


cdef class AnonymousInlet(SharedCreditInlet):
    """The inlet of one anonymous producer for one address, with the messages that wait for the address.

    All waiting messages were read from the link, the last perhaps not to its end (``partial``).
    """

    cdef AnonymousProducer producer
    cdef pn_delivery_t *partial
    cdef bint is_partial_discarded
    # The inlet for the pattern of the address, if the address was set apart; None for any other inlet.
    cdef AnonymousInlet shared
    # Of an address set apart: the number of its deliveries that went to ``shared`` before and are not settled, and of
    # those that were settled since; the deliveries at the last look whether the inlet is in use.
    cdef int awaited
    cdef unsigned long long settled_there
    cdef unsigned long long seen_apart
    # The address of ``partial``, if it is set apart and the delivery counts as awaited although no carrier has it.
    cdef bytes partial_named
    # True if the address was set apart from a shared circuit: its deliveries follow those by a barrier, and need not
    # wait for outcomes. The awaited deliveries and those settled at the last look whether they make progress.
    cdef bint is_behind_barrier
    cdef tuple seen_awaited
    # The groups of shared circuits that have this inlet go on when they have credit (`SharedAnycast.follow`).
    cdef list followed
    # True once a pre-settled message went over a circuit of the address, where it may wait for its consumer: without a
    # producer, the circuit would be closed, and the message lost.
    cdef bint has_sent_settled

    def __init__(self, AnonymousProducer producer, group):
        super().__init__(producer.link, group, producer.capacity)
        self.producer = producer
        self.budget = (<AddressGroup>group).copies
        self.followed = []
        producer.link.owner = producer

    cdef int on_unheard_settled(self, Taker taker) except -1:
        self.has_sent_settled = True
        return SharedCreditInlet.on_unheard_settled(self, taker)

    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0:
        cdef size_t size = len(self.held[0][1])
        return size + pending_now(delivery) if delivery is self.partial else size

    cdef int stuck_now(self) noexcept:
        return len(self.held) + self.awaited

    cdef unsigned long long progress_now(self) noexcept:
        return self.deliveries_in + self.settled_there

    cdef bint may_go_on_now(self) except -1:
        return (self.is_behind_barrier or not self.awaited) and Inlet.may_go_on_now(self)

    cdef bint is_from_client(self) noexcept:
        return True

    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept:
        return delivery is self.partial

    cdef int put_back(self, pn_delivery_t *delivery, bytes prefix) except -1:
        self.budget.used_bytes += PyBytes_GET_SIZE(prefix)
        self.held.appendleft((<size_t>delivery, prefix))
        self.producer.outstanding += 1
        return 0

    cdef int take_back(self, pn_delivery_t *delivery, bytes message, ReturnMark mark, Copies budget) except -1:
        self.producer.outstanding += 1
        return insert_returned(self.held, delivery, message, mark)

    cdef int pop(self) except -1:
        cdef AnonymousProducer producer = self.producer
        cdef bytes named = self.partial_named
        self.moving = None
        self.partial = NULL
        self.partial_named = None
        if named is not None:
            producer.on_awaited_settled(named)
            producer.pump_ready()
        return producer.on_head_done()

    # Methods of an inlet for all addresses of a pattern, some of which may be set apart
    cdef int hold(self, Carrier carrier) except -1:
        Inlet.hold(self, carrier)
        if self.group.may_be_full and carrier.outgoing is not NULL:
            (<Move>carrier).named = self.producer.name_in(<bytes>self.held[0][1])
            self.partial_named = None
        return 0

    cdef bint on_late(self, Carrier carrier) except -1:
        cdef bytes named = (<Move>carrier).named
        if named is not None:
            self.producer.set_apart(named, self)
        return True

    cdef bint retry_apart(self, Carrier carrier) except -1:
        cdef AnonymousProducer producer = self.producer
        cdef AnonymousInlet apart
        cdef Move move
        if not isinstance(carrier, Move) or self.is_lost:
            return False
        move = <Move>carrier
        if move.copy is None or move.named is None:
            return False
        apart = producer.apart.get(move.named)
        if apart is None and move.taker is not None and not move.is_untried:
            # The consumers gave the delivery back: only consumers elsewhere may have it.
            if producer.sharing.egress_of(move.named.decode()) == (<AddressGroup>self.group).egress:
                return False
        producer.set_apart(move.named, self)
        apart = producer.apart.get(move.named)
        # An address that stands still gives its messages back to their sender.
        if apart is None or apart in producer.stalls.stalled:
            return False
        return (<Anycast>apart.group).take_over(move)

    cdef set names_under_way(self):
        """Return the addresses of the deliveries that wait here or were passed on, and have no outcome yet."""
        cdef Carrier carrier = self.newest
        cdef set found = {self.producer.name_in(<bytes>place[1]) for place in self.held}
        while carrier is not None:
            if isinstance(carrier, Move) and (<Move>carrier).named is not None:
                found.add((<Move>carrier).named)
            carrier = carrier.older_in
        return found

    cdef int on_settled(self) except -1:
        Inlet.on_settled(self)
        return self.producer.pump_ready()

    cdef int give_to(self, AnonymousInlet apart, bytes named) except -1:
        """Give all waiting messages to the address ``named`` to its inlet ``apart``, and count those that went on."""
        cdef Carrier carrier = self.newest
        cdef object held = deque(), times = self.held_since
        cdef bint are_timed = times is not None and len(times) == len(self.held)
        while carrier is not None:
            if isinstance(carrier, Move) and (<Move>carrier).named == named:
                apart.awaited += 1
                if self.group.is_to_egress and carrier.taker is not None:
                    apart.on_unheard(carrier.taker)
                    apart.has_other_ways = True
            carrier = carrier.older_in
        if self.group.is_to_egress:
            (<SharedAnycast>self.group).follow(apart)
            if self.group not in apart.followed:
                apart.followed.append(self.group)
        if are_timed:
            self.held_since, apart.held_since = deque(), deque()
        for place in self.held:
            inlet = self
            if self.producer.name_in(<bytes>place[1]) == named:
                if <pn_delivery_t *><size_t>place[0] is self.partial:
                    self.partial_named = named
                    apart.awaited += 1
                else:
                    inlet = apart
                    place = place[:2]
            if are_timed:
                inlet.held_since.append(times.popleft())
            (held if inlet is self else apart.held).append(place)
        self.held = held
        return 0

    cdef int recall_awaited(self, bytes named, int count, bint is_late) except -1:
        """Ask for the newest ``count`` messages to ``named``, of a full queue or busy consumers, back, unless pre-settled.

        ``is_late``: only for those known to wait. Messages that were asked for before count.
        """
        cdef Carrier carrier = self.newest
        cdef Move move
        while carrier is not None and count > 0:
            if isinstance(carrier, Move) and (<Move>carrier).named == named:
                move = <Move>carrier
                if (move.is_late or not is_late) and move.may_be_recalled() and not pn.delivery_settled(move.incoming):
                    count -= 1
                    if move.taker is not None and pn.delivery_local_state(move.outgoing) != RELEASED_STATE:
                        ask_back(move)
            carrier = carrier.older_in
        return 0

    cdef int drop_head(self) except -1:
        self.take_prefix()
        self.producer.outstanding -= 1
        return self.pop()

    cdef int drop(self, Carrier carrier) except -1:
        cdef bytes named = None
        if self.group.may_be_full and self.producer.apart and isinstance(carrier, Move):
            named = (<Move>carrier).named
            if named is not None and carrier.incoming is self.partial:
                # The message comes back to the head, or is dropped there (`pop`).
                self.partial_named = named if named in self.producer.apart else None
                named = None
        Inlet.drop(self, carrier)
        if named is not None:
            self.producer.on_awaited_settled(named)
        self.producer.outstanding -= 1
        return self.producer.top_up_now()

    cdef bint is_discarding(self) noexcept:
        return self.is_partial_discarded

    cdef bint release_head(self) except -1:
        cdef AnonymousProducer producer = self.producer
        cdef pn_delivery_t *delivery = <pn_delivery_t *><size_t>self.held[0][0] if self.held else NULL
        cdef size_t size
        if delivery is NULL or self.moving is not None:
            return False
        size = len(self.held[0][1])
        if delivery is self.partial and not self._is_read_out(delivery):
            return False
        self.take_prefix()
        if delivery is self.partial:
            size = self.link.read_bytes
            self.pop()
        self.count_in()
        release(self, delivery, size)
        self.link.endpoint.mark()
        producer.outstanding -= 1
        producer.top_up_now()
        return True

    cdef int give_back(self, int most) except -1:
        cdef int _number, count
        if self.awaited > most:
            self.producer.recall(self.group.name_now(), self.awaited - most, True)
        count = self._bring_forward(max(0, most - self.awaited))
        for _number in range(count):
            self.release_head()
        # A message that still streams from the link is discarded, too: it blocks later messages to all addresses.
        if self.partial is not NULL and self.head_now() is self.partial and self.release_head():
            count += 1
        return count

    cdef int _bring_forward(self, int most) except -1:
        """Bring all waiting messages but ``most`` to the front of the list, to be released; return their number.

        Pre-settled messages stay behind those, since their sender would not learn of a release.
        """
        cdef list going = [], staying = []
        cdef Py_ssize_t left = len(self.held)
        if self.partial is not NULL:
            most = 0
        for place in self.held:
            delivery = <pn_delivery_t *><size_t>place[0]
            if left > most and delivery is not self.partial and not pn.delivery_settled(delivery):
                left -= 1
                going.append(place)
            else:
                staying.append(place)
        self.held = deque([*going, *staying])
        return len(going)

    cdef int turn_away(self, pn_delivery_t *delivery, size_t size) except -1:
        """Release a message of ``size`` bytes that this node does not keep.

        The budget has no room, or enough messages wait for an address that stands still.
        """
        cdef AddressGroup group = self.group
        group.released += 1
        release(self, delivery, size)
        return self.link.endpoint.mark()

    cdef bint _is_read_out(self, pn_delivery_t *delivery) except -1:
        """Read and discard the large message at the head; False while the end of the message has not arrived."""
        self.is_partial_discarded = True
        while pending_now(delivery):
            self.link.recv_into(scratch, CHUNK_BYTES)
        if pn.delivery_partial(delivery) and not pn.delivery_aborted(delivery):
            return False
        self.is_partial_discarded = False
        return True

    cdef bint is_idle(self) noexcept:
        return not self.held and self.moving is None and self.unsettled_count == 0 and not self.awaited


cdef class AnonymousProducer(DeliveryOwner):
    """An anonymous producer: owner of a client's incoming link without a target address.

    Each message goes to the producer's inlet in the group of the address that the message names. ``find(address)``
    returns this group, and ``find(address, True)`` the group of the address itself, if the addresses of its pattern
    share one; it raises AmqpError when the user may not send to the address, or the topology does not declare
    it or declares it unavailable. ``pattern_of(name)`` returns the `Address` of the pattern whose group the address
    ``name``, in normal form, shares; None if the address has a group of its own, if its group depends on its egress, or
    if the user may not send to it. The first message to an address of a pattern costs one call of ``pattern_of``, but no
    ``find`` if the pattern has a group already. ``sharing`` (`router.distribution.circuit_sharing`) knows the addresses
    that share a circuit now, and calls `on_egresses_changed` when others do.
    """

    cdef readonly IncomingCore link
    cdef readonly int capacity
    cdef Recorder recorder
    cdef dict inlets  # by group
    cdef dict to_egress  # those of `inlets` for addresses that share a circuit, each with its pattern
    cdef Stalls stalls
    cdef dict known  # bytes of `to` as in the message -> inlet, for addresses that have a group of their own
    cdef AddressCache patterns  # bytes of `to` -> `Address` of the pattern whose group the address shares
    cdef dict by_pattern  # `Address` of a pattern -> inlet; None for an anycast pattern
    cdef object sharing
    cdef AddressCache shares  # name of an address of an anycast pattern, as bytes -> its group, if it shares a circuit
    cdef dict apart  # name of an address that is set apart, as bytes -> inlet
    cdef list ready  # inlets of addresses set apart of which no delivery is awaited any more
    cdef object apart_timer
    cdef object recall_timer
    cdef size_t many_inlets
    cdef int outstanding  # number of deliveries of all inlets that were read, or begun, and are not settled
    cdef Guard guard
    cdef object find
    cdef object pattern_of
    cdef bytes prefix
    cdef AnonymousInlet streaming

    def __init__(self, IncomingCore link, int capacity, find, pattern_of, AddressCache patterns not None, sharing,
                 Guard guard, Recorder recorder not None):
        self.link = link
        self.recorder = recorder
        self.guard = guard
        self.capacity = capacity
        self.inlets, self.to_egress = {}, {}
        self.stalls = Stalls(capacity, self.inlets)
        self.known = {}
        self.patterns, self.by_pattern = patterns, {}
        self.sharing, self.shares = sharing, sharing.groups
        self.apart, self.ready = {}, []
        self.many_inlets = MANY_INLETS
        self.find, self.pattern_of = find, pattern_of
        self.prefix = b""
        link.owner = self

    def top_up(self):
        self.top_up_now()

    cdef int top_up_now(self) except -1:
        cdef int room
        if not self.link.is_open_now():
            return 0
        room = self.capacity - self.outstanding - self.link.credit_now() - pn.link_queued(self.link.raw)
        return self.link.grant_now(room) if room * 2 >= self.capacity else 0

    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        if not self._may_go_on():
            return 0
        if pn.delivery_partial(delivery):
            self.guard.watch()
        cdef AnonymousInlet streaming = self.streaming
        return self._read() if streaming is None else streaming.group.pump(streaming)

    cdef int on_head_done(self) except -1:
        self.streaming = None
        self.link.advance_now()
        return self._read()

    cdef int _read(self) except -1:
        cdef pn_delivery_t *delivery
        cdef bint is_partial
        while self.streaming is None and self._may_go_on() and (delivery := self.link.current_now()) is not NULL:
            self._take(delivery)
            is_partial = pn.delivery_partial(delivery) and not pn.delivery_aborted(delivery)
            if is_partial and (len(self.prefix) < CHUNK_BYTES or self._lacks_head()):
                return 0
            message, self.prefix = self.prefix, b""
            if not is_partial:
                self.link.advance_now()
            if pn.delivery_aborted(delivery):
                self.recorder.write_untaken(self.recorder.level, 0, len(message), ABORTED)
                pn.delivery_settle(delivery)
                continue
            self._pass_on(delivery, message, is_partial)
            if self.link.has_left:
                return 0
        return self.top_up_now()

    cdef bint _lacks_head(self) except -1:
        """True if the address in the message under way may stand in bytes that have not arrived yet."""
        cdef Head head
        cdef bytes start = self.prefix
        if PyBytes_GET_SIZE(start) > MOST_HEAD_BYTES:
            return False
        return scan_head(<const unsigned char *>PyBytes_AS_STRING(start), PyBytes_GET_SIZE(start), &head) == CUT

    cdef int _take(self, pn_delivery_t *delivery) except -1:
        """Read the bytes of the message under way that have arrived into ``prefix``."""
        cdef bytes piece
        cdef size_t size
        while (size := pending_now(delivery)):
            piece = PyBytes_FromStringAndSize(NULL, size)
            if not self.link.recv_into(PyBytes_AS_STRING(piece), size):
                return 0
            self.prefix = self.prefix + piece if self.prefix else piece
        return 0

    def on_offence(self):
        """End the link, since the guard's timer found an offence of the sender while no event came on the link."""
        self._may_go_on()

    cdef bint _may_go_on(self) except -1:
        if self.link.is_faulty():
            return False
        if not self.guard.has_offended():
            return True
        error = self.guard.offence()
        self.link.close(error)
        self.on_left(True, error)
        self.link.owner = None
        return False

    cdef int _pass_on(self, pn_delivery_t *delivery, bytes message, bint is_partial) except -1:
        cdef AnonymousInlet inlet
        try:
            inlet = self._inlet_for(message, is_partial)
            if inlet.group.is_to_egress and (
                is_partial or PyBytes_GET_SIZE(message) > CHUNK_BYTES or pn.delivery_settled(delivery)
            ):
                inlet = self._apart_from(inlet, self.name_in(message))
        except AmqpError as error:
            self.recorder.write_untaken(self.recorder.level, 0, len(message), REJECTED_STATE)
            self._reject(<size_t>delivery, error, is_partial)
            return 0
        if is_partial:
            inlet.budget.used_bytes += PyBytes_GET_SIZE(message)
        elif (self.stalls.has_enough(inlet) and not pn.delivery_settled(delivery)) or not inlet.budget.take(PyBytes_GET_SIZE(message)):
            return inlet.turn_away(delivery, PyBytes_GET_SIZE(message))
        inlet.held.append((<size_t>delivery, message))
        self.outstanding += 1
        if is_partial:
            inlet.partial = delivery
            self.streaming = inlet
        inlet.group.pump(inlet)
        if inlet.held or inlet.held_since is not None:
            inlet.note_held()
        return self.stalls.on_waiting(inlet) if inlet.held else 0

    cdef AnonymousInlet _inlet_for(self, bytes message, bint has_more):
        cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
        cdef Head head
        cdef bytes to
        cdef AnonymousInlet inlet
        if scan_head(raw, PyBytes_GET_SIZE(message), &head) != WHOLE:
            if head.finding == CUT and has_more:
                what = f"too many bytes before the body of a message: expected at most {MOST_HEAD_BYTES}"
                raise AmqpError("amqp:link:message-size-exceeded", what)
            if head.finding == CUT:
                raise AmqpError("amqp:decode-error", "the message ends before its properties do")
            raise fault_in(&head)
        if not head.to.size_bytes:
            raise AmqpError("amqp:invalid-field", "expected an address in the link's target or the message's `to`")
        to = PyBytes_FromStringAndSize(<const char *>raw + head.to.start, head.to.size_bytes)
        inlet = self.known.get(to)
        if inlet is not None:
            return inlet
        pattern = self.patterns.get_now(to)
        if pattern is None:
            return self._look_up(to)
        if type(pattern) is tuple:
            pattern, to = pattern
        if self.apart:
            inlet = self.apart.get(to)
            if inlet is not None:
                return inlet
        inlet = self.by_pattern.get(pattern)
        if inlet is not None:
            return inlet
        group = self.shares.get_now(to)
        inlet = self.inlets.get(group) if group is not None else None
        return self._look_up(to) if inlet is None else inlet

    cdef AnonymousInlet _look_up(self, bytes to):
        cdef str address = to.decode(), name = normalize(address)
        cdef AddressGroup group
        cdef AnonymousInlet inlet
        cdef bytes named = to if name is address else name.encode()
        pattern = self.pattern_of(name)
        if pattern is None:
            group = self.find(address)
            inlet = self._inlet_in(group)
            if group.pattern is not None:
                self.patterns.put_now(to, group.pattern if named is to else (group.pattern, named))
                if named in self.apart:
                    inlet = self.apart[named]
                elif group.is_to_egress:
                    self.shares.put_now(named, group)
                else:
                    inlet = self._keep_apart(group, named)
            elif len(to) <= LONG_SPELLING_BYTES:
                if len(self.known) >= MANY_SPELLINGS:
                    self.known.clear()
                self.known[to] = inlet
            return inlet
        inlet = self.by_pattern.get(pattern)
        if inlet is None:
            # `_inlet_in` may clear ``by_pattern``.
            inlet = self._inlet_in(self.find(address))
            self.by_pattern[pattern] = inlet
        self.patterns.put_now(to, pattern if named is to else (pattern, named))
        return self.apart.get(named, inlet) if self.apart else inlet

    cdef AnonymousInlet _inlet_in(self, group):
        cdef AnonymousInlet inlet = self.inlets.get(group)
        if inlet is None:
            self._forget_idle()
            inlet = self.inlets[group] = AnonymousInlet(self, group)
            group.add_inlet(inlet)
            if inlet.group.is_to_egress:
                self.to_egress[inlet] = (<AddressGroup>group).pattern
                self.sharing.producers[self] = None
        return inlet

    # Methods about addresses of a pattern that are set apart
    cdef bytes name_in(self, bytes message):
        """Return the name of the address of a message whose address shares links with others of its pattern."""
        cdef bytes to = _to_in(message)
        pattern = self.patterns.get_now(to)
        if pattern is None:
            return normalize(to.decode()).encode()
        return pattern[1] if type(pattern) is tuple else to

    cdef int set_apart(self, bytes named, AnonymousInlet shared) except -1:
        """Let the address ``named``, which is full, or has to do without sharing, no longer share links of ``shared``."""
        if named in self.apart or self.link.is_gone:
            return 0
        try:
            self._apart_from(shared, named)
        except AmqpError:
            pass  # The user may no longer send there: the next message is rejected.
        return 0

    cdef AnonymousInlet _apart_from(self, AnonymousInlet shared, bytes named):
        """Set the address ``named`` apart, which shares links of ``shared``; return its inlet.

        Raises AmqpError if the user may not send to the address any more.
        """
        cdef AnonymousInlet inlet = self.apart.get(named)
        if inlet is not None:
            return inlet
        group = self.find(named.decode(), True)
        if shared.group.is_to_egress:
            return self._keep_apart(group, named)
        inlet = self._inlet_in(group)
        inlet.shared = shared
        shared.give_to(inlet, named)
        self._note_apart(named, inlet)
        self.stalls.on_waiting(inlet)
        return inlet

    cdef AnonymousInlet _keep_apart(self, AddressGroup group, bytes named):
        """Let the anycast address ``named`` use its own ``group``, behind its deliveries on shared circuits, if any.

        Return the inlet of the address.
        """
        cdef AnonymousInlet other, inlet = self._inlet_in(group)
        # The address may have moved from one egress to another while it shared circuits.
        for other, pattern in self.to_egress.items():
            if pattern == group.pattern:
                inlet.is_behind_barrier = True
                if inlet.shared is None or other.newest is not None:
                    inlet.shared = other
                other.give_to(inlet, named)
        self._note_apart(named, inlet)
        if inlet.awaited and self.recall_timer is None:
            self._look_at_awaited_later(group)
        if inlet.held:
            self.stalls.on_waiting(inlet)
            group.timers.after(0.0, lambda: self._pump(inlet))
        return inlet

    def _pump(self, AnonymousInlet inlet):
        inlet.group.pump(inlet)

    cdef int _note_apart(self, bytes named, AnonymousInlet inlet) except -1:
        self.apart[named] = inlet
        if self.apart_timer is None:
            self._look_later(inlet.group)
        return 0

    cdef int recall(self, bytes named, int count, bint is_late) except -1:
        cdef AnonymousInlet inlet
        for inlet in list(self.inlets.values()):
            if inlet.group.may_be_full:
                inlet.recall_awaited(named, count, is_late)
        return 0

    def _look_at_awaited_later(self, AddressGroup group):
        self.recall_timer = group.timers.after(group.settings.path_wait_s, lambda: self._look_at_awaited(group))

    def _look_at_awaited(self, AddressGroup group):
        """Ask for the deliveries of addresses set apart back that make no progress, if another egress may take them."""
        cdef AnonymousInlet inlet
        cdef bint is_awaiting = False
        self.recall_timer = None
        for named, inlet in list(self.apart.items()):
            if not inlet.is_behind_barrier or not inlet.awaited:
                continue
            is_awaiting = True
            seen, inlet.seen_awaited = inlet.seen_awaited, (inlet.awaited, inlet.settled_there)
            if seen == inlet.seen_awaited and (<Anycast>inlet.group).has_ready_beside(
                inlet, (<AddressGroup>inlet.shared.group).egress
            ):
                self.recall(named, inlet.awaited, False)
        if is_awaiting and self.recall_timer is None:
            self._look_at_awaited_later(group)

    def on_egresses_changed(self, names):
        """Set the addresses apart whose consumers are no longer all at the egress of the circuit that they share.

        ``names``: the addresses to look at, as a set of bytes; None for all.
        """
        cdef AnonymousInlet inlet
        for inlet in list(self.to_egress):
            found = inlet.names_under_way()
            for named in found if names is None else found & names:
                if self.sharing.egress_of(named.decode()) != (<AddressGroup>inlet.group).egress:
                    self.set_apart(named, inlet)

    cdef int on_awaited_settled(self, bytes named) except -1:
        cdef AnonymousInlet inlet = self.apart.get(named)
        if inlet is None:
            return 0
        inlet.awaited -= 1
        inlet.settled_there += 1
        if not inlet.awaited and not inlet.is_behind_barrier:
            self.ready.append(inlet)
        return 0

    cdef int pump_ready(self) except -1:
        """Let messages to addresses set apart go on, whose earlier messages were all settled now."""
        cdef AnonymousInlet inlet
        while self.ready:
            inlet = self.ready.pop()
            inlet.group.pump(inlet)
        return 0

    def _look_later(self, AddressGroup group):
        self.apart_timer = group.timers.after(APART_S, lambda: self._look_at_apart(group))

    def _look_at_apart(self, AddressGroup group):
        """Let addresses share links again of which nothing was under way at the last look, nor came since."""
        cdef AnonymousInlet inlet
        self.apart_timer = None
        for named, inlet in list(self.apart.items()):
            if inlet.has_sent_settled:
                continue
            if inlet.is_idle() and inlet.seen_apart == inlet.progress_now() + 1:
                del self.apart[named]
                self._forget(inlet)
            else:
                inlet.seen_apart = inlet.progress_now() + 1 if inlet.is_idle() else 0
        if self.apart:
            self._look_later(group)

    cdef int _forget(self, AnonymousInlet inlet) except -1:
        cdef AddressGroup group = inlet.group
        self.inlets.pop(group, None)
        self.to_egress.pop(inlet, None)
        if self.apart.get(group.name_now()) is inlet:
            del self.apart[group.name_now()]
        self._unfollow(inlet)
        inlet.recorder.note(inlet, False, None)
        (<AddressGroup>inlet.group).lose_inlet(inlet, None)
        return 0

    cdef int _unfollow(self, AnonymousInlet inlet) except -1:
        for group in inlet.followed:
            (<SharedAnycast>group).unfollow(inlet)
        inlet.followed = []
        return 0

    cdef int _forget_idle(self) except -1:
        """Forget the producer's idle inlets if it has many: a client that answers requests uses ever new addresses."""
        cdef AnonymousInlet inlet
        if len(self.inlets) < self.many_inlets:
            return 0
        self.known.clear()
        self.by_pattern.clear()
        for inlet in list(self.inlets.values()):
            if inlet.is_idle() and (inlet.shared is None or inlet.is_behind_barrier):
                self._forget(inlet)
        self.many_inlets = max(<size_t>MANY_INLETS, 2 * <size_t>len(self.inlets))
        return 0

    def _reject(self, size_t delivery, error, bint is_partial):
        if is_partial:
            # A partial message would have to be read to its end before it can be rejected: the link is ended instead.
            self.link.close(error)
            self.on_left(True, error)
            self.link.owner = None
            return
        if not pn.delivery_settled(<pn_delivery_t *>delivery):
            set_outcome(delivery, rejected(error.condition, error.description))
        pn.delivery_settle(<pn_delivery_t *>delivery)
        self.link.endpoint.mark()

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        cdef Carrier carrier = carrier_at(delivery)
        if carrier is not None:
            carrier.on_sender_disposition()
        return 0

    cdef int on_flow_event(self) except -1:
        return 0

    cdef int on_room(self) except -1:
        return 0

    def on_established(self, link):
        """Do nothing: the client attached this link, so this router waits for no answer to an attach."""

    @property
    def has_more(self):
        """True if complete messages of the producer still wait here, for any address."""
        cdef AnonymousInlet inlet
        cdef Carrier newest
        cdef pn_delivery_t *delivery = NULL if self.link.is_gone else self.link.current_now()
        if self.link.is_gone or self.link.is_faulty():
            return False
        if delivery is not NULL and not pn.delivery_partial(delivery):
            return True
        for inlet in self.inlets.values():
            if inlet.held and inlet.head_now() is not inlet.partial:
                return True
            newest = inlet.newest
            if newest is not None and newest.is_unsent():
                return True
        return False

    @property
    def progress(self):
        """A value that changes whenever a message of the producer moves."""
        return (self.outstanding, self.link.read_bytes)

    def on_left(self, closed, error):
        cdef AnonymousInlet inlet
        self.stalls.stop()
        if self.apart_timer is not None:
            self.apart_timer.cancel()
            self.apart_timer = None
        if self.recall_timer is not None:
            self.recall_timer.cancel()
            self.recall_timer = None
        for inlet in self.apart.values():
            self._unfollow(inlet)
        self.sharing.producers.pop(self, None)
        self.apart.clear()
        self.ready.clear()
        inlets = dict(self.inlets)
        self.inlets.clear()
        self.to_egress.clear()
        self.known.clear()
        self.by_pattern.clear()
        for group, inlet in inlets.items():
            inlet.abandon()
            group.lose_inlet(inlet, error)
        self.streaming = None
        if closed:
            self.link.close()
        else:
            self.link.detach()

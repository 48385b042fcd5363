"""The egress of circuits that the addresses of an anycast pattern share: each delivery is passed on by its `to`.

A delivery to an address with a consumer that has credit goes to this consumer at once. If a delivery has to wait, the
address gets an inlet of its own on the circuit, a `LateInlet`, which takes its turns in the address's group like any
other inlet, and through which all later deliveries of the circuit to this address go. So no address holds up another.
While more deliveries wait than the consumers have credit for, and one for the minimum credit, the newest is *late*: the
ingress is told by the state `received` [3.4.1], and sends the next ones over a circuit of the address itself. A delivery
without consumers here goes back as never written. Decision 0060.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from router.forwarding.address cimport AddressGroup
from router.forwarding.anycast cimport Anycast
from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.head cimport WHOLE_BYTES, is_let_down, is_recalled, release
from router.forwarding.held_inlet cimport HeldInlet
from router.forwarding.move cimport Move, start_move
from router.forwarding.tags cimport is_barrier
from recording.records cimport ABORTED
from wire.address_cache cimport AddressCache
from wire.core cimport IncomingCore
from wire.delivery cimport pending_now
from wire.proton cimport ACCEPTED_STATE, RECEIVED_STATE, RELEASED_STATE, pn, pn_delivery_t
from wire.sections cimport Head, scan_head

from addressing.address import normalize
from router.forwarding.words import UNWRITTEN
from wire.address_cache import IDLE_S
from wire.delivery import set_outcome
from wire.errors import LinkError

# The time in s after which an inlet of an address here ends, if nothing of the address came or waited meanwhile.
cdef double QUIET_S = 5.0
# The most bytes of a barrier, an empty message with an address, which waits here beyond the budget of copies.
cdef Py_ssize_t MOST_BARRIER_BYTES = 8192


cdef class LateInlet(HeldInlet):
    """The inlet of a shared circuit for an address with deliveries that wait here, or waited a while ago."""

    def __init__(self, SharedCircuit circuit, AddressGroup group):
        super().__init__(circuit.link, group, circuit.limit, is_circuit=True)
        circuit.link.owner = circuit
        self.circuit = circuit
        self.ingress = circuit.ingress
        self.budget = group.copies

    cdef bint may_go_on_now(self) except -1:
        # When the connection is lost, no link is tied to this inlet: it has to look at the circuit's.
        return not self.circuit.is_lost and HeldInlet.may_go_on_now(self)

    cdef int take(self, pn_delivery_t *delivery, bytes message) except -1:
        cdef AddressGroup group = self.group
        cdef bint is_asked = is_barrier(delivery)
        if is_asked and PyBytes_GET_SIZE(message) > MOST_BARRIER_BYTES:
            return self.circuit.give_back(delivery, PyBytes_GET_SIZE(message))
        if is_asked:
            self.budget.used_bytes += PyBytes_GET_SIZE(message)
        elif not self.budget.take(PyBytes_GET_SIZE(message)):
            return self.circuit.give_back(delivery, PyBytes_GET_SIZE(message))
        self.held.append((<size_t>delivery, message))
        group.pump(self)
        if not self.held:
            return 0
        self.note_held()
        if not is_asked and <int>len(self.held) > max(0, group.credit_of_locals) + 1:
            self.tell_late()
        return 0

    cdef int tell_late(self) except -1:
        """Tell the ingress of the newest delivery that waits here, if any, that it waits: its address is full."""
        cdef pn_delivery_t *delivery
        for place in reversed(self.held):
            delivery = <pn_delivery_t *><size_t>place[0]
            if not is_barrier(delivery) and not pn.delivery_settled(delivery):
                pn.delivery_update(delivery, RECEIVED_STATE)
                return self.link.endpoint.mark()
        return 0

    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0:
        return len(self.held[0][1])

    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept:
        return False

    cdef bint is_discarding(self) noexcept:
        return False

    cdef bint has_queued(self) noexcept:
        return len(self.held) > 0

    cdef int read_ahead(self, Copies budget, bint is_pressing) except -1:
        return 0  # all deliveries of this address were read

    cdef int pop(self) except -1:
        self.moving = None
        return 0

    cdef int drop_head(self) except -1:
        self.take_prefix()
        return 0

    cdef int leave_head(self) except -1:
        self.take_prefix()
        return 0

    cdef bint release_head(self) except -1:
        cdef pn_delivery_t *delivery = self.head_now()
        cdef size_t size
        if delivery is NULL or self.moving is not None:
            return False
        size = PyBytes_GET_SIZE(self.take_prefix())
        if is_barrier(delivery):
            self.circuit._answer(delivery)
            return True
        self.count_in()
        release(self, delivery, size)
        return True

    cdef int release_recalled(self, Copies budget) except -1:
        cdef int count = 0
        cdef object held = deque()
        while self.held:
            if is_recalled(self.head_now()) and not is_barrier(self.head_now()) and self.release_head():
                count += 1
            else:
                held.append(self.held.popleft())
        self.held = held
        return count

    @property
    def may_be_drained(self):
        """False, since the credit of the circuit is for all addresses."""
        return False

    @property
    def is_idle(self):
        """True if nothing of the address waits or is under way here."""
        return not self.held and self.moving is None and self.unsettled_count == 0


cdef class SharedCircuit(Inlet):
    """A circuit that ends here and that the addresses of an anycast pattern share, as its ingress says.

    It is the inlet of the deliveries that were passed on at once. Its link always has credit: what waits is bounded by
    the credit of the producers at the ingress, and by the node's budget of copies.
    """

    def __init__(self, IncomingCore link, SharedArrivals group, int limit):
        super().__init__(link, group, limit, is_circuit=True)
        self.late = {}
        self.prefix = b""

    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        self.read()
        return self.note_credit()

    cdef int read(self) except -1:
        cdef pn_delivery_t *delivery
        while self.may_go_on_now() and not self.link.is_gone and (delivery := self.link.current_now()) is not NULL:
            self._take()
            if pn.delivery_partial(delivery) and not pn.delivery_aborted(delivery):
                if PyBytes_GET_SIZE(self.prefix) > WHOLE_BYTES:
                    self.expel(LinkError(
                        "amqp:link:message-size-exceeded",
                        f"a circuit that many addresses share brought a message of more than {WHOLE_BYTES} bytes",
                    ))
                return 0
            message, self.prefix = self.prefix, b""
            self.link.advance_now()
            self._dispatch(delivery, message)
        return self.grant()

    cdef int _take(self) except -1:
        """Read the bytes that have arrived of the message under way into ``prefix``."""
        cdef bytes piece
        cdef size_t size
        while (size := pending_now(self.link.current_now())):
            piece = PyBytes_FromStringAndSize(NULL, size)
            if not self.link.recv_into(PyBytes_AS_STRING(piece), size):
                return 0
            self.prefix = self.prefix + piece if self.prefix else piece
        return 0

    cdef int grant(self) except -1:
        cdef int room
        if self.is_lost or not self.link.is_open_now():
            return 0
        room = self.limit - self.link.credit_now() - pn.link_queued(self.link.raw)
        if room * 2 < self.limit:
            return 0
        self.link.grant_now(room)
        return self.note_credit()

    cdef int _dispatch(self, pn_delivery_t *delivery, bytes message) except -1:
        cdef SharedArrivals arrivals = self.group
        cdef Anycast group
        cdef LateInlet late
        cdef Taker taker
        cdef bint is_asked = is_barrier(delivery)
        if pn.delivery_aborted(delivery) or is_let_down(delivery):
            self.recorder.write_untaken(self.record_level, self.number, PyBytes_GET_SIZE(message), ABORTED)
            pn.delivery_settle(delivery)
            self.link.endpoint.mark()
            return 0
        if is_asked and not message:
            # Another circuit takes the place of this one. The ingress sets the addresses apart that wait here.
            for late in self.late.values():
                late.tell_late()
            return self._answer(delivery)
        group = arrivals.group_in(message, self.late)
        late = self.late.get(group) if group is not None else None
        if late is not None:
            return late.take(delivery, message)
        if is_asked:
            return self._answer(delivery)
        if group is None:
            return self.give_back(delivery, PyBytes_GET_SIZE(message))
        taker = group.taker_at_once(self, PyBytes_GET_SIZE(message))
        if taker is not None:
            return self._pass_on(group, taker, delivery, message)
        return self._add_late(group).take(delivery, message)

    cdef int _pass_on(self, Anycast group, Taker taker, pn_delivery_t *delivery, bytes message) except -1:
        cdef Move move
        self.count_in()
        move = start_move(self, delivery, taker, taker.start())
        self.moving = None
        if group.recording:
            group.record_choice(move, taker, None, PyBytes_GET_SIZE(message))
        move.copy = message
        move.is_read = True
        if not pn.delivery_settled(delivery) and group.may_offer_again(self):
            move.keep(group.copies)
        return move.advance() and 0

    cdef int give_back(self, pn_delivery_t *delivery, size_t size) except -1:
        """Give a delivery back to the ingress that no consumer had: none is here, or the budget has no room."""
        self.count_in()
        self.recorder.write_untaken(self.record_level, self.number, size, RELEASED_STATE)
        (<AddressGroup>self.group).released += 1
        if not pn.delivery_settled(delivery):
            set_outcome(<size_t>delivery, UNWRITTEN)
        pn.delivery_settle(delivery)
        return self.link.endpoint.mark()

    cdef int _answer(self, pn_delivery_t *delivery) except -1:
        """Answer a barrier: the deliveries before it that it asks for were passed on, or given back."""
        pn.delivery_update(delivery, ACCEPTED_STATE)
        pn.delivery_settle(delivery)
        return self.link.endpoint.mark()

    cdef LateInlet _add_late(self, Anycast group):
        cdef LateInlet late = LateInlet(self, group)
        self.late[group] = late
        group.add_inlet(late)
        if self.look_timer is None:
            self._look_later()
        return late

    def _look_later(self):
        cdef AddressGroup group = self.group
        self.look_timer = group.timers.after(QUIET_S, self._look)

    def _look(self):
        """End the inlets of addresses of which nothing was here at the last look, nor came since."""
        cdef LateInlet late
        self.look_timer = None
        for group, late in list(self.late.items()):
            if late.is_idle and late.seen_late == late.deliveries_in + 1:
                self._end(group, late)
            else:
                late.seen_late = late.deliveries_in + 1 if late.is_idle else 0
        if self.late:
            self._look_later()

    def _end(self, group, LateInlet late):
        del self.late[group]
        late.recorder.note(late, False, None)
        (<AddressGroup>group).lose_inlet(late, None)

    def abandon(self):
        cdef LateInlet late
        if self.look_timer is not None:
            self.look_timer.cancel()
            self.look_timer = None
        self.is_lost = True
        for group, late in list(self.late.items()):
            late.abandon()
            self._end(group, late)
        super().abandon()

    @property
    def has_more(self):
        """True if deliveries wait here, for any address, or were not handed on to their end."""
        return any([(<LateInlet>late).held for late in self.late.values()]) or Inlet.has_more.__get__(self)

    @property
    def may_be_drained(self):
        """False, since the credit of the circuit is for all addresses."""
        return False


cdef class SharedArrivals(AddressGroup):
    """The group of the shared circuits of an anycast pattern that end here. It has no takers of its own.

    ``find(name)`` returns the group of the address ``name`` of the pattern, if the address has consumers at this
    router or at edge routers behind it, else None.
    """

    def __init__(self, *given, find, str distribution, **options):
        super().__init__(*given, **options)
        self.find = find
        self.distribution = distribution
        self.known = AddressCache(self._age_later)
        self.takes_recalls = True

    @property
    def treatment(self):
        return self.distribution

    def _age_later(self):
        self.timers.after(IDLE_S, self._age)

    def _age(self):
        if self.known.age():
            self._age_later()

    cdef Anycast group_in(self, bytes message, dict late):
        """Return the group of the address that ``message`` names; None if the address has no consumers here.

        The groups in ``late`` have deliveries that wait here, and count as well.
        """
        cdef const unsigned char *raw = <const unsigned char *>PyBytes_AS_STRING(message)
        cdef Head head
        cdef bytes to
        cdef Anycast group
        scan_head(raw, PyBytes_GET_SIZE(message), &head)
        to = PyBytes_FromStringAndSize(<const char *>raw + head.to.start, head.to.size_bytes)
        group = self.known.get_now(to)
        # A group without a consumer may have been dropped, and another one may have come in its place.
        if group is None or not (group.has_local() or group in late):
            group = self.find(normalize(to.decode()))
            if group is not None:
                self.known.put_now(to, group)
        return group

    # Methods of a group, which here passes deliveries on to the groups of their addresses
    cdef bint has_takers(self) noexcept:
        return True

    cdef int top_up_now(self, Inlet inlet) except -1:
        return (<SharedCircuit>inlet).grant()

    cdef int pump(self, Inlet inlet) except -1:
        return (<SharedCircuit>inlet).read()

    cdef int on_returned(self, Inlet inlet) except -1:
        return 0

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        return 0

    cdef bint retry(self, Carrier carrier) except -1:
        cdef Anycast group = self.group_in((<Move>carrier).copy, (<SharedCircuit>carrier.inlet).late)
        return group is not None and group.retry(carrier)

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        cdef LateInlet late
        cdef Anycast group
        cdef Inlet own
        if carrier is None:
            for late in (<SharedCircuit>inlet).late.values():
                self.released += late.release_recalled(self.copies)
        elif isinstance(carrier.inlet, LateInlet):
            own = carrier.inlet
            group = own.group
            group.on_recalled(own, carrier)
        elif isinstance(carrier, Move) and (<Move>carrier).copy is not None:
            group = self.group_in((<Move>carrier).copy, (<SharedCircuit>inlet).late)
            if group is not None:
                group.on_recalled(inlet, carrier)
        return True

    def give_up(self):
        """Release nothing: what waits here waits in the groups of the addresses."""

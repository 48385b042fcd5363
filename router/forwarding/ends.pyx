"""The ends of a group, inlets (incoming links) and takers (outgoing links), and the carriers of deliveries between
them.

A local consumer, a circuit and a broker are all takers; a client's producer, a circuit and a broker are all inlets. A
carrier is the state of one delivery under way, and stands in the lists of both ends until the delivery is settled. The
engine's deliveries name their carrier by a tie (`router.forwarding.ties`), so an event about a delivery that was
settled meanwhile is recognized and ignored.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from router.forwarding.guard cimport Guard
from router.forwarding.head cimport InletHead, is_recalled
from router.forwarding.tags cimport TAG_BYTES, producers_of, write_tag
from router.forwarding.ties cimport carrier_of, end_tie, new_tie
from wire.core cimport IncomingCore, LinkCore, OutgoingCore
from wire.drought cimport Drought, take_us, turn
from wire.proton cimport RECEIVE_SECOND, pn
from recording.records cimport Recorder

from collections import deque

from wire.errors import LocalStateError
from wire.link import SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED


cdef enum:
    LIGHT_BYTES = 16384
    # If the deliveries of an incoming link have more than LIGHT_BYTES on average, at most MOST_BYTES divided by the
    # average, plus one, of these deliveries may be promised or unsettled.
    MOST_BYTES = 16777216

# The number of recent deliveries of an inlet is halved after each such time in s.
cdef double HALVING_S = 0.05


cdef Carrier carrier_at(pn_delivery_t *delivery):
    """Return the carrier of this incoming or outgoing delivery; None if the delivery has no carrier, or no longer.

    Raises LocalStateError if the delivery's tie leads to the carrier of another delivery.
    """
    cdef unsigned long long tie = <unsigned long long>pn.delivery_get_context(delivery)
    cdef void *found
    if not tie:
        return None
    found = carrier_of(tie)
    if found is NULL:
        return None  # settled since: the event is stale
    carrier = <Carrier><PyObject *>found
    if carrier.incoming is delivery or carrier.outgoing is delivery:
        return carrier
    if carrier.inlet is None or carrier.taker is None:
        return None  # the carrier has dropped this delivery, and goes on with the delivery at its other end
    raise LocalStateError(f"a delivery has tie {tie:#x}, which belongs to another delivery")


cdef bint has_had(list tried, Taker taker) except -1:
    """True if ``taker``, or a shared circuit to the egress to which ``taker`` leads, is among ``tried``."""
    cdef Taker other
    if taker in tried:
        return True
    for other in tried:
        if other.group.is_to_egress and other.egress == taker.egress:
            return True
    return False


cdef int _fasten(Carrier carrier, pn_delivery_t *delivery) except -1:
    """Tie the engine's delivery to the carrier; the tie keeps the carrier in memory until `_end` ends the tie."""
    if not carrier.tie:
        carrier.tie = new_tie(<void *>carrier)
        Py_INCREF(carrier)
    pn.delivery_set_context(delivery, <void *>carrier.tie)
    return 0


cdef int _loosen(Carrier carrier, LinkCore link, pn_delivery_t *delivery) except -1:
    if link.endpoint.is_freed:
        return 0
    if <unsigned long long>pn.delivery_get_context(delivery) != carrier.tie:
        raise LocalStateError(f"tie {carrier.tie:#x} now belongs to another delivery")
    return 0


cdef int _end(Carrier carrier) except -1:
    if carrier.inlet is None and carrier.taker is None and carrier.tie:
        end_tie(carrier.tie)
        carrier.tie = 0
        Py_DECREF(carrier)
    return 0


cdef dict _with(dict takers, Taker taker):
    if takers is None:
        takers = {}
    elif taker not in takers:
        for each in [each for each in takers if not (<Taker>each).link.is_open_now()]:
            del takers[each]
    takers[taker] = None
    return takers


cdef class Group:
    """Base class of the groups, which pass deliveries from inlets to takers: anycast, multicast and relay."""

    def __init__(self, Recorder recorder not None, record_level=None):
        """Make a group whose deliveries ``recorder`` records at ``record_level``; None: at the node's own level."""
        self.recorder = recorder
        self.record_level = recorder.level_of(record_level)

    cdef int pump(self, Inlet inlet) except -1:
        """Pass on as many of the inlet's waiting deliveries as the group's takers accept now."""
        raise NotImplementedError

    cdef int on_inlet_room(self, Inlet inlet) except -1:
        """Called when the inlet waited for room at a taker's connection, and may find room now: pass on deliveries."""
        return self.pump(inlet)

    cdef int on_moved(self, Taker taker) except -1:
        """Called when the taker's link is free for the next delivery: waiting deliveries may go on.

        ``taker`` None: the links of several takers of a multicast are free.
        """
        return 0

    cdef int on_credit(self, Taker taker) except -1:
        """Called when the receiver of ``taker`` may have changed its credit, or asked for a drain.

        The group passes on waiting deliveries, and grants the inlets credit.
        """
        raise NotImplementedError

    cdef int on_blocked(self, Taker taker) except -1:
        """Called when a started multicast copy, or a barrier, waits for room or credit at ``taker``.

        A multicast starts the stall timer of ``taker``.
        """
        return 0

    cdef int on_taker_room(self, Taker taker) except -1:
        """Called when the group waited for the taker's link to become writable, and the link may be writable now.

        Inlets that rest until the taker can have deliveries get credit again.
        """
        return 0

    cdef int on_returned(self, Inlet inlet) except -1:
        """Called when one of the inlet's deliveries was settled, so that the sender may get credit again."""
        return 0

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        """Called when the inlet's sender sent a flow, which may give back credit in answer to a drain."""
        return 0

    cdef bint retry(self, Carrier carrier) except -1:
        """Offer a delivery that its taker gave back, or was lost with, to another taker, now or later.

        Return False if the group does not, and the delivery's sender has to learn the outcome.
        """
        return False

    cdef bint retransmits(self, Inlet inlet) except -1:
        """True if this inlet's deliveries are sent again when in doubt: written to a taker that was lost."""
        return False

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        """Called when the router that sends over ``inlet`` recalls a delivery, that is, asks for it back.

        ``carrier``: the delivery's carrier, None while the delivery waits for a taker. Return False to have the caller
        pass the recall on to the delivery's taker.
        """
        return False

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        """Called when a delivery went back to the head of the inlet, where the delivery waits for a taker again.

        Its taker revoked the credit for it, or no consumer got the copies of a multicast.
        """
        return 0

    cdef bint take_back(self, Carrier carrier) except -1:
        """Put a multicast delivery that reached no consumer back to the head of its inlet, to go out again.

        Return False if that is not done, and the delivery's sender has to get the outcome.
        """
        return False

    cdef int on_given_back(self, Taker taker) except -1:
        """Called when ``taker``, a multicast branch, gave back a delivery that no consumer behind the branch got.

        A branch of this router's own tree is then made anew.
        """
        return 0

    cdef int on_too_large(self, Inlet inlet, size_t size) except -1:
        """Called when a queue's message went back over ``inlet``, since it is too large for all takers here.

        ``size``: the bytes of the message that are known, of the whole message or of a part.
        """
        return 0

    cdef int on_undeliverable(self, Inlet inlet) except -1:
        """Called when a queue's message went back over ``inlet``, because a taker said undeliverable-here.

        The link from the broker is made anew when a new consumer comes, since the broker never gives the message to the
        old link again.
        """
        return 0

    cdef int on_ranked(self, Taker taker) except -1:
        """Called when a taker with ``is_ranked`` may have become better or worse than others, or can take or not."""
        return 0

    cdef int on_copy_aborted(self) except -1:
        """Called when a taker of the group lost a copy that was begun, and is free for the next delivery."""
        return 0

    cdef int on_barrier_blocked(self) except -1:
        """Called when a barrier of another group's inlet waits for credit at a taker of this group."""
        return 0

    cdef bytes name_now(self):
        """Return the name of the group's address in UTF-8, without its space; b"" for a relay."""
        return b""

    def on_inlet_left(self, inlet, closed, error):
        raise NotImplementedError

    def on_taker_leaving(self, taker):
        """Called when the taker's link has ended, before its deliveries are offered to other takers or given back.

        If a branch of this router's own tree is lost, a multicast holds deliveries of producers at this router until
        the branch is made anew, for ``hold_s`` at most.
        """

    def on_taker_left(self, taker, closed, error):
        raise NotImplementedError

    def on_established(self, link):
        """Called when the peer has answered the attach of ``link``, which this router opened.

        The answer may be a refusal (``link.is_refused``).
        """


@cython.no_gc  # a carrier's reference cycles end when its tie ends
cdef class Carrier(Waiter):
    """Base class for the state of one delivery on its way from an inlet to a taker.

    Always: the carrier is in the inlet's list of carriers while ``inlet`` is set, in the taker's while ``taker`` is.
    """

    cdef bint note_taker(self) except -1:
        """Note at the inlet that a circuit has the delivery, so that a barrier can ask the circuit's egress about it.

        Return False if a broker has the delivery: a broker answers no barrier.
        """
        return True

    cdef bint goes_to(self, Taker taker) noexcept:
        """True if ``taker`` has the delivery, and has given no outcome yet."""
        return self.taker is taker

    cdef int advance(self) except -1:
        """Copy as many bytes of the delivery to its taker as possible now.

        Return True when the incoming link may begin its next delivery.
        """
        raise NotImplementedError

    cdef bint is_unsent(self) noexcept:
        """True if the delivery was read to its end here, but not handed to its taker's link to the end."""
        return False

    cdef bint may_be_given_back(self) noexcept:
        """True if the delivery's message is in a broker's queue, and its sender has heard no outcome.

        Such a delivery counts as not tried if its taker leaves in order, without giving an outcome.
        """
        return False

    cdef bint read_rest(self) except -1:
        """Read the rest of a complete delivery out of the engine, so that the deliveries behind it can be read.

        False if nothing was read, because the rest is large or has not arrived.
        """
        return False

    cdef int on_room(self) except -1:
        return self.advance()

    cdef int on_taker_disposition(self) except -1:
        """Called when the delivery's receiver gave a state, or settled: the sender is told, or another taker is tried.
        """
        return 0

    cdef int on_sender_disposition(self) except -1:
        """Called when the delivery's sender gave a state, or settled: a `Move` tells the receiver, a `Fan` does not."""
        return 0

    cdef int on_inlet_lost(self, bint comes_again) except -1:
        """Called when the link of the delivery's sender is lost.

        ``comes_again``: the sender is a router or broker, and will send the delivery again or report its loss.
        """
        return 0

    cdef int on_taker_lost(self, bint is_unwritten) except -1:
        return 0


cdef class Inlet(InletHead):
    """An inlet: an incoming link in a group, with its sender's credit and its unsettled deliveries.

    Always: ``promised + unsettled_count <= limit``, and ``promised <= limit`` if the sender is a router. Only the
    float, one credit for each producer that the inlet stands for, may exceed the limit. Counts are deliveries.
    """

    def __init__(self, IncomingCore link, Group group, int limit, *, bint is_circuit=False, Guard guard=None):
        self.link = link
        self.group = group
        self.limit = limit
        self.is_circuit = is_circuit
        self.guard = guard
        self.seen_at = self.idle_at = -1
        self.weight = 1
        self.recorder = group.recorder
        self.number = self.recorder.next_number()
        self.record_level = group.record_level
        self.drought = Drought(True, self.recorder.now_us, 0)
        self.is_restless = True
        self.recorder.note(self, True, None)
        self.recorder.note_restless(self)
        link.owner = self
        self.note_credit()

    # Events
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        if self.guard is not None and pn.delivery_partial(delivery):
            self.guard.watch()
        self.group.pump(self)
        if not self.link.is_gone and (self.held_since is not None or pn.link_queued(self.link.raw) > 0):
            self.note_held()
        return self.note_credit()

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        cdef Carrier carrier = carrier_at(delivery)
        if self.is_from_node() and is_recalled(delivery) and self.group.on_recalled(self, carrier):
            return 0
        if carrier is not None:
            carrier.on_sender_disposition()
        return 0

    cdef int on_flow_event(self) except -1:
        self.group.on_sender_flow(self)
        return self.note_credit()

    cdef int on_room(self) except -1:
        return 0 if self.link.is_gone else self.group.on_inlet_room(self)

    def on_established(self, link):
        self.group.on_established(link)

    def on_left(self, closed, error):
        """Give up the deliveries (`abandon`), then tell the group: the sender's link has ended."""
        self.recorder.note(self, False, error)
        if self.is_from_client():
            self.record_left()
        self.abandon()
        self.group.on_inlet_left(self, closed, error)

    def on_gone(self):
        self.recorder.note(self, False, None)
        if self.newest is not None:
            self.abandon()

    # Rules
    cdef bint is_second(self) noexcept:
        """True if this router and the sender agreed on rcv-settle-mode second: this router settles last. [2.8.3]

        Not every broker agrees to the mode when asked.
        """
        cdef bint is_asked = pn.link_rcv_settle_mode(self.link.raw) == RECEIVE_SECOND
        return is_asked and pn.link_remote_rcv_settle_mode(self.link.raw) == RECEIVE_SECOND

    cdef bint may_go_on_now(self) except -1:
        """True unless the inlet's link is lost, or its sender broke a rule of the protocol.

        If the guard has found an offence of a client, the client's link is ended in this call.
        """
        if self.is_lost or self.link.is_faulty():
            return False
        if self.guard is None or not self.guard.has_offended():
            return True
        self.expel(self.guard.offence())
        return False

    def on_offence(self):
        """End the link, since the guard's timer found an offence of the sender while no event came on the link."""
        self.may_go_on_now()

    def expel(self, error):
        """Close the inlet's link with ``error``, and give up its deliveries; those that still arrive are ignored."""
        self.link.close(error)
        self.on_left(True, error)
        self.link.owner = None

    # Permitted takers
    cdef bint is_from_client(self) noexcept:
        """True if the sender is a client: only a client's link has a guard.

        A router or broker sends a delivery again after its link was lost; a client perhaps never does.
        """
        return self.guard is not None

    cdef bint is_of_queue(self) noexcept:
        """True if this inlet's messages come from a broker's queue, which keeps each until it hears an outcome."""
        return self.group.is_of_queue or not (self.is_from_client() or self.is_from_node())

    cdef bint is_from_node(self) noexcept:
        """True if the sender is a router, over a circuit or from an edge; each inlet of a relay counts as a circuit."""
        return self.is_circuit or self.is_edge

    cdef bint may_feed(self, Taker taker) noexcept:
        """True if ``taker`` may have deliveries of this inlet.

        Deliveries from a circuit go only to near takers (`Taker.is_near`), so no delivery travels in a loop. An edge
        router gets none of its own deliveries back, unless the address has a fallback queue.
        """
        if self.is_circuit:
            return taker.is_near_now()
        return not self.shuns or taker.edge != self.shuns

    # Carriers
    cdef int hold(self, Carrier carrier) except -1:
        _fasten(carrier, carrier.incoming)
        carrier.inlet = self
        carrier.rank = self.rank
        carrier.older_in = self.newest
        if self.newest is not None:
            self.newest.newer_in = carrier
        self.newest = carrier
        self.unsettled_count += 1
        return 0

    cdef int drop(self, Carrier carrier) except -1:
        """Remove the carrier from the inlet's list of carriers; the caller settles the incoming delivery."""
        _loosen(carrier, self.link, carrier.incoming)
        if carrier.newer_in is not None:
            carrier.newer_in.older_in = carrier.older_in
        else:
            self.newest = carrier.older_in
        if carrier.older_in is not None:
            carrier.older_in.newer_in = carrier.newer_in
        carrier.newer_in = carrier.older_in = None
        carrier.inlet = None
        carrier.incoming = NULL
        self.unsettled_count -= 1
        if self.moving is carrier:
            self.moving = None
        return _end(carrier)

    def abandon(self):
        """Drop the deliveries under way here, since their sender is lost, and forget its waiting deliveries.

        Complete deliveries of a client, and pre-settled ones, that are under way still go on to their takers. A partial
        message is aborted at its taker.
        """
        cdef Carrier carrier
        cdef bint comes_again, is_here = not self.link.endpoint.is_freed
        self.recorder.note(self, False, None)
        self.is_lost = True
        self.forget_read()
        while (carrier := self.newest) is not None:
            comes_again = is_here and not self.is_from_client() and not pn.delivery_settled(carrier.incoming)
            self.drop(carrier)
            carrier.on_inlet_lost(comes_again)

    @property
    def has_more(self):
        """True if complete deliveries of the inlet's sender still wait here, or were not handed on to their end."""
        cdef pn_delivery_t *delivery
        cdef Carrier newest = self.newest
        if self.link.is_gone or self.link.is_faulty():
            return False
        if self.backlog is not None or (newest is not None and newest.is_unsent()):
            return True
        delivery = self.link.current_now()
        return delivery is not NULL and not pn.delivery_partial(delivery)

    @property
    def progress(self):
        """A value that changes whenever a delivery of the inlet's sender moves."""
        return (self.deliveries_in, self.link.read_bytes, self.unsettled_count)

    # The head
    cdef bint has_moving(self) noexcept:
        return self.moving is not None

    cdef int pop(self) except -1:
        """Advance the link to its next delivery, since the delivery under way was read to its end."""
        self.moving = None
        return self.link.advance_now()

    cdef int drop_head(self) except -1:
        """Skip the head, a delivery that its sender aborted before any taker had a part of it."""
        return self.pop()

    # Waiting times
    cdef int note_held(self) except -1:
        """Note the present time as the arrival time of deliveries that arrived just now and wait for a taker."""
        cdef int waiting = self.waiting_now()
        if waiting <= 0:
            self.held_since = None
            return 0
        if self.held_since is None:
            self.held_since = deque()
        while <int>len(self.held_since) > waiting:
            self.held_since.popleft()
        while <int>len(self.held_since) < waiting:
            self.held_since.append(self.recorder.now_us)
        return 0

    cdef int leave_line(self) except -1:
        """Set ``came_us`` to the arrival time of the inlet's oldest delivery, which leaves now."""
        self.came_us = self.recorder.now_us
        if self.held_since:
            self.came_us = self.held_since.popleft()
        return 0

    cdef int return_to_line(self, unsigned long long came_us) except -1:
        """Put back the arrival time of a delivery that comes back to the head of the inlet."""
        if self.held_since is None:
            self.held_since = deque()
        self.held_since.appendleft(came_us)
        return 0

    cdef int count_in(self) except -1:
        if self.held_since is None:
            self.came_us = self.recorder.now_us
        else:
            self.leave_line()
        if self.promised_count > 0:
            self.set_promised(self.promised_count - 1)
        self.deliveries_in += 1
        return 0

    cdef int on_unheard(self, Taker taker) except -1:
        """Note that circuit ``taker`` may still hold deliveries of this inlet, whose outcomes may come late or never.

        The inlet asks the circuit by a barrier before deliveries take another circuit. A taker that needs no barrier,
        such as a local consumer, is not noted.
        """
        if taker.cost == 0 or (self.is_circuit and not taker.edge) or taker.way == FORSAKEN_WAY:
            return 0
        self.unheard = _with(self.unheard, taker)
        return 0

    cdef int on_unheard_settled(self, Taker taker) except -1:
        """Note that the circuit ``taker`` may hold a delivery that gets no outcome, such as a pre-settled delivery."""
        self.on_unheard(taker)
        if self.is_from_node() and self.unheard is not None and taker in self.unheard:
            self.settled_to = _with(self.settled_to, taker)
        return 0

    cdef bint on_late(self, Carrier carrier) except -1:
        """Called when the delivery's broker said that its queue is full, and that the delivery waits there for room.

        Return False to have the caller tell the sender, which is a router.
        """
        return False

    cdef bint retry_apart(self, Carrier carrier) except -1:
        """Offer a delivery that came back over a shared circuit to the takers of its own address, now or later.

        Return False if none may have the delivery, and its sender has to learn the outcome.
        """
        return False

    cdef int on_settled(self) except -1:
        """Tell the group that one of the inlet's deliveries was settled."""
        return self.group.on_returned(self)

    # Credit
    cdef int limit_now(self) noexcept:
        """Return how many deliveries the sender may have promised or unsettled: ``limit``, or fewer if they are large.

        The engine keeps the bytes of a delivery until the delivery is settled, read or not.
        """
        if self.usual_bytes <= LIGHT_BYTES:
            return self.limit
        return <int>min(<long long>self.limit, MOST_BYTES // self.usual_bytes + 1)

    cdef int weigh(self, size_t size) except -1:
        """Update the average size with the ``size`` of the inlet's next delivery.

        If the average lowers the limit below the promised credit, reduce the sender's credit by a flow.
        """
        cdef int limit
        if size <= LIGHT_BYTES and self.usual_bytes <= LIGHT_BYTES:
            return 0
        self.usual_bytes += (<long long>size - self.usual_bytes) // 8
        limit = self.limit_now()
        if self.promised_count > limit and self.link.is_open_now():
            self.reduce(limit)
        return 0

    @property
    def promised(self):
        """The number of deliveries that the sender may still start, as far as known here, plus those that wait here."""
        return self.promised_count

    cdef int set_promised(self, int count) except -1:
        cdef Group filter_
        if self.is_circuit:
            self.group.promised_to_circuits += count - self.promised_count
        else:
            self.group.promised_to_producers += count - self.promised_count
        if self.group.filters is not None:
            for filter_ in self.group.filters:
                filter_.promised_by_members += count - self.promised_count
        self.promised_count = count
        return 0

    cdef int note_credit(self) except -1:
        """Have the recorder look at this inlet, since the sender's credit may have changed."""
        if not self.record_level or self.link.is_gone:
            return 0
        if not self.has_moved:
            self.has_moved = True
            self.recorder.note_moved(self)
        if turn(&self.drought, self.link.credit_now() <= 0, self.recorder.now_us) and not self.is_restless:
            self.is_restless = True
            self.recorder.note_restless(self)
        return 0

    def record_at(self, unsigned char level):
        """Record deliveries and credit of this inlet at ``level`` from now on."""
        cdef bint is_first = level and not self.record_level
        self.record_level = level
        if is_first:
            self.drought = Drought(False, 0, 0)
            self.note_credit()

    def rest(self):
        """Report the next movement to the recorder again; called when the recorder has read the inlet's counts."""
        self.has_moved = False

    @property
    def credit(self):
        """The number of deliveries that the inlet's sender may still start."""
        return self.link.credit_now()

    @property
    def kept_count(self):
        """None, since unsettled deliveries are recorded at the takers that have them, not at the inlet."""
        return None

    @property
    def moved_count(self):
        return self.deliveries_in

    @property
    def starves(self):
        """True if the sender has no credit; always False while this inlet is not recorded."""
        return self.record_level != 0 and self.drought.is_on

    def take_starved_us(self):
        """Return how long the sender had no credit since the last call, in microseconds; 0 if not recorded."""
        self.is_restless = False
        return take_us(&self.drought, self.recorder.now_us) if self.record_level else 0

    cdef int top_up(self, int count) except -1:
        """Raise the sender's credit by ``count`` deliveries."""
        # Deliveries that were on the wire when credit was reduced wait here, on credit no longer counted as promised.
        self.set_promised(max(self.promised_count, self.held_now()) + count)
        self.link.grant_now(count)
        return self.note_credit()

    cdef bint needs_float(self) noexcept:
        """True if the sender has no credit and no delivery waits here: the sender needs a float to send at all."""
        return self.promised_count == 0 and self.moving is None and not self.has_queued()

    cdef int recent_count(self, double now) noexcept:
        """Return the number of recent deliveries; it grows with each delivery, and is halved every ``HALVING_S``."""
        cdef long long count = <long long>self.deliveries_in - self.recent_from
        cdef double halvings = (now - self.recent_s) / HALVING_S
        if halvings >= 1:
            count = count >> <int>halvings if halvings < 32 else 0
            self.recent_from, self.recent_s = <long long>self.deliveries_in - count, now
        return <int>min(count, <long long>self.limit)

    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept:
        """Set the inlet's weight to the number of producers behind the circuit, which the delivery's tag says."""
        self.weight = max(1, producers_of(delivery))
        return 0

    cdef int waiting_now(self) noexcept:
        """Return the number of deliveries that arrived on the inlet and have not begun to leave."""
        cdef int count = pn.link_queued(self.link.raw) - (self.moving is not None)
        return max(0, count) + (0 if self.backlog is None else len(self.backlog))

    cdef int held_now(self) noexcept:
        """Return the number of deliveries that the sender may still start, plus those that wait here."""
        return max(0, self.link.credit_now()) + self.waiting_now()

    def hear_credit(self):
        """Set the promised credit to the sender's present credit plus the waiting deliveries, as after a drain."""
        self.set_promised(0 if self.link.is_gone else self.held_now())
        self.note_credit()

    cdef int reduce(self, int count) except -1:
        """Reduce the promised credit to ``count``, or to the number of waiting deliveries if more wait, by a flow.

        Deliveries that cross the flow on the wire still arrive. Nothing happens while the sender drains.
        """
        cdef int waiting = self.waiting_now()
        if self.is_draining:
            return 0  # the sender is giving all credit back, and this flow would end the drain
        self.link.set_credit_now(max(0, count - waiting))
        self.note_credit()
        return self.set_promised(max(count, waiting))

    def revoke(self):
        """Take back all credit of the sender by a flow; deliveries that cross the flow still arrive."""
        if self.link.is_open_now():
            self.reduce(0)

    @property
    def is_moving(self):
        """True if a delivery of the inlet is on its way to a taker and was not read to its end."""
        return self.moving is not None

    @property
    def may_be_drained(self):
        """True if an anycast consumer's drain may ask the sender: a router, or a client whose link is to this address.

        An anonymous producer is not asked, since its credit is for any address.
        """
        return self.is_from_node() or self.guard is not None


cdef class Taker(DeliveryOwner):
    """A taker: an outgoing link in a group, with the receiver's credit and its unsettled deliveries.

    ``cost``: the cost of a circuit's path, or 1 and the depth of the tree behind a multicast branch; 0 for a local
    consumer or a broker. ``upstream``: the one inlet whose deliveries may go here (a multicast branch), None for any.
    ``is_broker``: this router's own link to a broker. ``is_stream``: a link beside a shared link, for one inlet's large
    deliveries. ``is_for_settled``: a multicast branch for pre-settled deliveries of producers at this router.
    ``on_sending()``, if given, is called before each delivery is started here. On a stream it is called before the end
    of each delivery, which may come long after the beginning: a queue holds no incomplete message.
    """

    def __init__(
        self,
        OutgoingCore link,
        Group group,
        int cost=0,
        *,
        upstream=None,
        bint is_stream=False,
        bint is_broker=False,
        bint is_for_settled=False,
        on_sending=None,
    ):
        self.link = link
        self.group = group
        self.cost = cost
        self.upstream = upstream
        self.is_stream = is_stream
        self.way = LARGE_WAY if is_stream else SETTLED_WAY if is_for_settled else SHARED_WAY
        if group.is_to_egress:
            self.way = PATTERN_WAY
        self.is_ours = cost > 0 or is_broker
        self.is_broker = is_broker
        self.on_sending = on_sending
        self.number = group.recorder.next_number()
        self.weight = 1
        self.place = -1
        self.credit_count = link.credit_now()
        self.had_credit = self.credit_count > 0
        asked = link.remote_settle_modes[0] if cost == 0 and not is_broker else SEND_MIXED
        self.presettles = asked == SEND_SETTLED
        # Where a queue behind a circuit may be full, the ingress has to hear so, also of pre-settled messages.
        self.wants_outcomes = is_broker or asked == SEND_UNSETTLED or group.may_be_full
        self.max_message_bytes = link.remote_max_message_bytes
        self.record_level = group.record_level
        self.group.recorder.note(self, True, None)
        link.owner = self
        self.note_move()
        self.note_drain(True)

    # Events
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        raise AssertionError("expected no delivery from the peer on an outgoing link")

    cdef int on_disposition_event(self, pn_delivery_t *delivery) except -1:
        cdef Carrier carrier = carrier_at(delivery)
        if carrier is not None:
            carrier.on_taker_disposition()
        elif pn.delivery_settled(delivery):
            pn.delivery_settle(delivery)
        return 0

    cdef int on_flow_event(self) except -1:
        cdef int credit = self.credit_count
        self.sync()
        self.note_move()
        self.note_drain(self.credit_count > credit)
        return self.group.on_credit(self)

    cdef int note_move(self) except -1:
        """Have the recorder look at this taker, since the number of deliveries at its receiver may have changed."""
        if self.record_level and not self.has_moved:
            self.has_moved = True
            self.group.recorder.note_moved(self)
        return 0

    def record_at(self, unsigned char level):
        """Record this taker at ``level`` from now on."""
        self.record_level = level
        self.note_move()

    def rest(self):
        """Report the next movement to the recorder again; called when the recorder has read the taker's counts."""
        self.has_moved = False

    @property
    def kept_count(self):
        """The number of unsettled deliveries at the taker's receiver, without one that is still being written."""
        return self.unsettled_count - (self.moving is not None)

    @property
    def moved_count(self):
        return self.deliveries_out

    cdef int note_drain(self, bint has_more) except -1:
        """Count a drain, for the records, if the taker's receiver has just asked for one. [2.6.7]"""
        cdef bint is_asked = self.credit_count > 0 and pn.link_get_drain(self.link.raw)
        if is_asked and (has_more or not self.is_asked):
            if not self.drains:
                self.group.recorder.note_restless(self)
            self.drains += 1
        self.is_asked = is_asked
        return 0

    def take_drains(self):
        """Return the number of drains that the taker's receiver asked for since the last call."""
        found, self.drains = self.drains, 0
        return found

    cdef int on_room(self) except -1:
        return 0 if self.link.is_gone else self.group.on_taker_room(self)

    def on_established(self, link):
        self.max_message_bytes = self.link.remote_max_message_bytes
        self.group.on_established(link)

    def on_left(self, closed, error):
        self.group.recorder.note(self, False, error)
        self.has_left_in_order = self.cost == 0 and not self.edge and self.link.has_peer_left_in_order(error)
        self.group.on_taker_leaving(self)
        self.abandon()
        self.group.on_taker_left(self, closed, error)

    def on_gone(self):
        self.group.recorder.note(self, False, None)
        if self.newest is not None:
            self.abandon()

    # Carriers
    cdef int hold(self, Carrier carrier) except -1:
        _fasten(carrier, carrier.outgoing)
        carrier.taker = self
        carrier.was_written = False
        carrier.older_out = self.newest
        if self.newest is not None:
            self.newest.newer_out = carrier
        self.newest = carrier
        self.unsettled_count += 1
        self.moving = carrier
        self.note_move()
        return self.set_credit(self.credit_count - 1)

    cdef int drop(self, Carrier carrier) except -1:
        """Remove the carrier from the taker's list of carriers; the caller settles or aborts the outgoing delivery."""
        _loosen(carrier, self.link, carrier.outgoing)
        if carrier.newer_out is not None:
            carrier.newer_out.older_out = carrier.older_out
        else:
            self.newest = carrier.older_out
        if carrier.older_out is not None:
            carrier.older_out.newer_out = carrier.newer_out
        carrier.newer_out = carrier.older_out = None
        carrier.taker = None
        carrier.outgoing = NULL
        self.unsettled_count -= 1
        if self.moving is carrier:
            self.moving = None
        if self.is_ranked:
            self.group.on_ranked(self)
        self.note_move()
        return _end(carrier)

    cdef int end_move(self) except -1:
        """Let the taker's link have its next delivery, since the last one was handed to the link to the end."""
        self.moving = None
        return self.group.on_ranked(self) if self.is_ranked else 0

    def abandon(self):
        """Take all deliveries away from this taker, whose link has ended.

        A written delivery is in doubt, and its sender learns so, unless its copy is sent again. A delivery that was not
        written, or was given back, is offered to another taker.
        """
        cdef Carrier carrier
        cdef bint is_given_back
        self.group.recorder.note(self, False, None)
        self.is_closing = True
        self.set_credit(0)
        # The oldest delivery is taken away first: other takers are offered the deliveries in this order.
        for carrier in self._oldest_first():
            if carrier.taker is self:
                is_given_back = self.has_left_in_order and carrier.may_be_given_back()
                carrier.on_taker_lost(self._let_go(carrier) or is_given_back)

    cdef list _oldest_first(self):
        cdef Carrier carrier = self.newest
        cdef list found = []
        while carrier is not None:
            found.append(carrier)
            carrier = carrier.older_out
        found.reverse()
        return found

    cdef bint _let_go(self, Carrier carrier) except -1:
        """Drop the carrier from this taker, whose link has ended; True if its delivery was not written to the end.

        A partial delivery is aborted: otherwise the receiver would take its bytes for a complete message.
        """
        cdef pn_delivery_t *outgoing = carrier.outgoing
        cdef bint is_open = not self.link.is_gone and not self.link.endpoint.is_freed
        cdef bint is_partial = is_open and self.moving is carrier
        cdef bint is_unwritten = is_partial or (
            is_open and not carrier.was_written and pn.delivery_buffered(outgoing)
        )
        self.drop(carrier)
        if is_partial:
            self._note_written_in_session()
            self.link.abort_now(outgoing)
            # The engine writes the abort now: the engine would fail if the link and its session were freed before that.
            pn.transport_pending(self.link.endpoint.transport)
        return is_unwritten

    cdef int _note_written_in_session(self) except -1:
        """Set ``was_written`` of all deliveries on the links of this session that the engine has written.

        Once the session has ended, the engine no longer knows which deliveries were written.
        """
        cdef LinkCore link
        cdef Taker taker
        cdef Carrier carrier
        for link in self.link.endpoint.links:
            if link.session is not self.link.session or not isinstance(link.owner, Taker):
                continue
            taker = link.owner
            carrier = taker.newest
            while carrier is not None:
                if not pn.delivery_buffered(carrier.outgoing):
                    carrier.was_written = True
                carrier = carrier.older_out
        return 0

    cdef pn_delivery_t *start(self) except NULL:
        """Start a new delivery on the link; its tag has a running number, and the number of producers if not 1."""
        cdef unsigned char tag[TAG_BYTES]
        cdef int size
        if self.on_sending is not None and not self.is_stream:
            self.on_sending()
        self.last_tag += 1
        size = write_tag(tag, self.last_tag, self.weight)
        return self.link.start_now(<const char *>tag + TAG_BYTES - size, size)

    cdef int miss(self) except -1:
        """Count, for the records, a multicast delivery of which this taker gets no copy, or no complete one."""
        if self.copies_missed == self.copies_told:
            self.group.recorder.note_restless(self)
        self.copies_missed += 1
        return 0

    def take_missed(self):
        """Return the number of multicast deliveries that the taker missed since the last call."""
        found, self.copies_told = self.copies_missed - self.copies_told, self.copies_missed
        return found

    # Credit
    @property
    def credit(self):
        """The number of deliveries that the taker's receiver accepts now."""
        return self.credit_count

    cdef int set_credit(self, int credit) except -1:
        if self.is_member and not self.is_stream:
            if not self.is_near_now():
                self.group.credit_of_circuits += credit - self.credit_count
            else:
                self.group.credit_of_locals += credit - self.credit_count
        self.credit_count = credit
        return self.group.on_ranked(self) if self.is_ranked else 0

    cdef int sync(self) except -1:
        """Set the taker's credit to the engine's credit, less a delivery under way, which the engine still counts.

        A taker that is closing keeps its credit, unless it was replaced and needs credit for barriers.
        """
        if self.is_closing_now and self.way != LEFT_WAY:
            return 0
        self.set_credit(self.link.credit_now() - (self.moving is not None))
        if self.credit_count > 0:
            self.had_credit = True
        return 0

    def sync_credit(self):
        self.sync()

    cdef bint is_near_now(self) noexcept:
        """True if the taker is a consumer here, a broker, or an edge router that uses this router as its uplink.

        Deliveries from circuits that end here may go to near takers only.
        """
        return self.cost == 0 or self.edge != 0

    @property
    def is_near(self):
        return self.is_near_now()

    cdef bint can_take_now(self) noexcept:
        return self.credit_count > 0 and self.moving is None and not self.is_closing_now

    @property
    def can_take(self):
        return self.can_take_now()

    @property
    def is_moving(self):
        """True if a delivery to this taker was begun and not handed to its link to the end."""
        return self.moving is not None

    # Methods about membership in the group, which counts the credit of its members only.
    cdef int join(self) except -1:
        cdef int credit = self.credit_count
        if not self.is_member:
            self.set_credit(0)
            self.is_member = True
            self.set_credit(credit)
        return 0

    cdef int leave(self) except -1:
        cdef int credit = self.credit_count
        if self.is_member:
            self.set_credit(0)
            self.is_member = False
            self.set_credit(credit)
        return 0

    @property
    def is_closing(self):
        """True if the taker gets no more deliveries, and ends once none of its deliveries is unsettled."""
        return self.is_closing_now

    @is_closing.setter
    def is_closing(self, bint value):
        cdef bint is_needed_again = self.is_closing_now and not value
        self.is_closing_now = value
        self.group.version += 1
        if self.is_ranked:
            self.group.on_ranked(self)
        if is_needed_again:
            self.sync()

    def set_cost(self, int cost):
        """Set the cost of a circuit's path, which has changed, but not to 0."""
        self.cost = cost
        if self.is_ranked:
            self.group.on_ranked(self)

    @property
    def is_left(self):
        """True if another circuit replaced this taker, which then ends once all its deliveries were passed on."""
        return self.way == LEFT_WAY

    def go_on(self):
        """Stop closing the taker, which the group needs again, and use the credit that its peer granted meanwhile."""
        self.is_closing = False
        self.group.on_credit(self)

"""The two ends of a stitch: an inlet wraps an incoming link, a taker an outgoing one; carriers are what is between.

A local consumer, a circuit and a broker are all takers; a client's producer, a circuit and a broker all inlets. A
carrier is one delivery under way: it is in the lists of both its ends until settled, and nothing else keeps it. The
engine's deliveries know their carrier by a tie (`router.forwarding.ties`), so what is stale is found out.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from router.forwarding.guard cimport Guard
from router.forwarding.head cimport Head, is_recalled
from router.forwarding.tags cimport TAG_BYTES, producers_of, write_tag
from router.forwarding.ties cimport carrier_of, end_tie, new_tie
from wire.core cimport IncomingCore, LinkCore, OutgoingCore
from wire.drought cimport Drought, take_us, turn
from wire.proton cimport RECEIVE_SECOND, pn
from wire.records cimport recorder

from collections import deque

from wire.errors import LocalStateError
from wire.link import SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED


cdef enum:
    LIGHT_BYTES = 16384
    # Of what a link may have outstanding when its deliveries are not light.
    MOST_BYTES = 16777216

cdef unsigned int _numbers = 0


cdef unsigned int _next_number():
    """Of an end, for records: never used again in this process."""
    global _numbers
    _numbers += 1
    return _numbers


cdef Carrier carrier_at(pn_delivery_t *delivery):
    """The carrier that has this delivery at one of its ends; None for one that was not stitched, or is no more."""
    cdef unsigned long long tie = <unsigned long long>pn.delivery_get_context(delivery)
    cdef void *found
    if not tie:
        return None
    found = carrier_of(tie)
    if found is NULL:
        return None  # settled since: what was told of it is old
    carrier = <Carrier><PyObject *>found
    if carrier.incoming is delivery or carrier.outgoing is delivery:
        return carrier
    if carrier.inlet is None or carrier.taker is None:
        return None  # that end let go of its delivery, and the other goes on
    raise LocalStateError(f"a delivery with the tie {tie:#x} of another")


cdef int _fasten(Carrier carrier, pn_delivery_t *delivery) except -1:
    """The list of its ends keeps the carrier while it has a tie."""
    if not carrier.tie:
        carrier.tie = new_tie(<void *>carrier)
        Py_INCREF(carrier)
    pn.delivery_set_context(delivery, <void *>carrier.tie)
    return 0


cdef int _loosen(Carrier carrier, LinkCore link, pn_delivery_t *delivery) except -1:
    if link.endpoint.is_freed:
        return 0
    if <unsigned long long>pn.delivery_get_context(delivery) != carrier.tie:
        raise LocalStateError(f"the delivery of the tie {carrier.tie:#x} has become another")
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
    """What ties inlets to takers: anycast, multicast or a relay."""

    def __cinit__(self, *_, **__):
        self.record_level = recorder.level

    cdef int pump(self, Inlet inlet) except -1:
        """Move what can be moved of this inlet's deliveries."""
        raise NotImplementedError

    cdef int on_inlet_room(self, Inlet inlet) except -1:
        """There is room where this inlet waited for it."""
        return self.pump(inlet)

    cdef int on_moved(self, Taker taker) except -1:
        """The taker's link is free for the next delivery."""
        return 0

    cdef int on_credit(self, Taker taker) except -1:
        """The taker's credit or drain changed."""
        raise NotImplementedError

    cdef int on_blocked(self, Taker taker) except -1:
        """A started copy waits for room at this taker."""
        return 0

    cdef int on_taker_room(self, Taker taker) except -1:
        """The taker waited until something can be written to it, and that may be so now."""
        return 0

    cdef int on_returned(self, Inlet inlet) except -1:
        """One of the inlet's deliveries was settled: its credit may return."""
        return 0

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        """The inlet's sender sent a flow: perhaps it drained."""
        return 0

    cdef bint retry(self, Carrier carrier) except -1:
        """Its taker gave it back, or was lost before it was written: True when another one has it, or will."""
        return False

    cdef bint retransmits(self, Inlet inlet) except -1:
        """What came of this inlet is sent again when it is in doubt."""
        return False

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        """The ingress of this circuit would have a delivery back, which ``carrier`` has if it is under way.

        False: whoever took it is to know.
        """
        return False

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        """Its head was to go to a taker that took its credit back: nothing of it was read."""
        return 0

    cdef bint take_back(self, Carrier carrier) except -1:
        """Nobody has it, of all that it was for: True when it goes out again, as if it had come just now."""
        return False

    cdef int on_given_back(self, Taker taker) except -1:
        """This branch gave back what nobody behind it has."""
        return 0

    cdef int on_too_large(self, Inlet inlet, size_t size) except -1:
        """A message of a queue, of at least this size, went back: it is larger than what takers here take."""
        return 0

    cdef int on_undeliverable(self, Inlet inlet) except -1:
        """A message of a queue went back: none of the takers here want it."""
        return 0

    def on_inlet_left(self, inlet, closed, error):
        raise NotImplementedError

    def on_taker_leaving(self, taker):
        """Before its deliveries are given up."""

    def on_taker_left(self, taker, closed, error):
        raise NotImplementedError

    def on_established(self, link):
        """The peer answered an attach of ours."""


@cython.no_gc  # its cycles end with its ties
cdef class Carrier(Waiter):
    """One delivery under way. Always: in the list of ``inlet`` while that is set, in that of ``taker`` likewise."""

    cdef bint note_taker(self) except -1:
        """Its inlet is to know that a circuit has it. False: a broker has it, which cannot be asked what it passed on."""
        return True

    cdef bint goes_to(self, Taker taker) noexcept:
        """``taker`` has the delivery, and has given no outcome yet."""
        return self.taker is taker

    cdef int advance(self) except -1:
        """Copy what can be copied. True when the incoming link is free for its next delivery."""
        raise NotImplementedError

    cdef bint is_unsent(self) noexcept:
        """It is here to its end, and did not leave."""
        return False

    cdef bint may_be_given_back(self) noexcept:
        """It lies in a queue, and its taker has given no outcome."""
        return False

    cdef bint read_rest(self) except -1:
        """Take what is left of a whole delivery out of the engine; its link goes on without it. False when it cannot."""
        return False

    cdef int on_room(self) except -1:
        return self.advance()

    cdef int on_taker_disposition(self) except -1:
        """The taker gave a state or settled."""
        return 0

    cdef int on_sender_disposition(self) except -1:
        """The sender gave a state or settled."""
        return 0

    cdef int on_inlet_lost(self, bint comes_again) except -1:
        """``comes_again``: its sender, a router or a broker, tells its producer of the loss, or gives it to another."""
        return 0

    cdef int on_taker_lost(self, bint is_unwritten) except -1:
        return 0


cdef class Inlet(Head):
    """An incoming link in a group.

    Always: ``promised + unsettled_count <= limit`` but for the float of one; of a circuit ``promised <= limit``. Counts
    are deliveries.
    """

    def __init__(self, IncomingCore link, Group group, int limit, *, bint is_circuit=False, Guard guard=None):
        self.link = link
        self.group = group
        self.limit = limit
        self.is_circuit = is_circuit
        self.guard = guard
        self.seen_at = self.idle_at = -1
        self.weight = 1
        self.number = _next_number()
        self.record_level = group.record_level
        self.drought = Drought(True, recorder.now_us, 0)
        self.is_restless = True
        recorder.note(self, True, None)
        recorder.note_restless(self)
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
        """The link is going, by detach or with its connection: give up its deliveries, then tell the group."""
        recorder.note(self, False, error)
        if self.is_from_client():
            self.record_left()
        self.abandon()
        self.group.on_inlet_left(self, closed, error)

    def on_gone(self):
        recorder.note(self, False, None)
        if self.newest is not None:
            self.abandon()

    # Rules
    cdef bint is_second(self) noexcept:
        """Its sender has the last word on settlement. [2.8.3] Not every broker that is asked to agrees."""
        cdef bint is_asked = pn.link_rcv_settle_mode(self.link.raw) == RECEIVE_SECOND
        return is_asked and pn.link_remote_rcv_settle_mode(self.link.raw) == RECEIVE_SECOND

    cdef bint may_go_on_now(self) except -1:
        """False when its sender broke a rule: then the link has been ended."""
        if self.is_lost:
            return False
        if self.guard is None or not self.guard.has_offended():
            return True
        self.expel(self.guard.offence())
        return False

    def on_offence(self):
        """Its guard found out what no event tells."""
        self.may_go_on_now()

    def expel(self, error):
        """End the link for what its sender did. What it still sends is not looked at."""
        self.link.close(error)
        self.on_left(True, error)
        self.link.owner = None

    # Who may have what comes
    cdef bint is_from_client(self) noexcept:
        """What is lost of it may come never again; only clients are guarded against."""
        return self.guard is not None

    cdef bint is_of_queue(self) noexcept:
        """A queue has what comes here until there is an outcome."""
        return self.group.is_of_queue or (self.guard is None and not self.is_from_node())

    cdef bint is_from_node(self) noexcept:
        """A router sends here what its producers send there."""
        return self.is_circuit or self.is_edge

    cdef bint may_feed(self, Taker taker) noexcept:
        """What came over a circuit goes no further than to those near here: no loops. An edge gets nothing back."""
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
        """Forget the carrier; the engine's delivery is the caller's to settle."""
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
        """What a client sent, and what came settled, goes on without its sender; half a message is aborted downstream."""
        cdef Carrier carrier
        cdef bint comes_again, is_here = not self.link.endpoint.is_freed
        recorder.note(self, False, None)
        self.is_lost = True
        self.forget_read()
        while (carrier := self.newest) is not None:
            comes_again = is_here and not self.is_from_client() and not pn.delivery_settled(carrier.incoming)
            self.drop(carrier)
            carrier.on_inlet_lost(comes_again)

    @property
    def has_more(self):
        """Of the complete deliveries that came, some did not go on yet."""
        cdef pn_delivery_t *delivery
        cdef Carrier newest = self.newest
        if self.link.is_gone:
            return False
        if self.backlog is not None or (newest is not None and newest.is_unsent()):
            return True
        delivery = self.link.current_now()
        return delivery is not NULL and not pn.delivery_partial(delivery)

    @property
    def progress(self):
        """Changes when something of what came goes on."""
        return (self.deliveries_in, self.link.read_bytes, self.unsettled_count)

    # What is at its head
    cdef bint has_moving(self) noexcept:
        return self.moving is not None

    cdef int pop(self) except -1:
        """The delivery under way was read to its end: the link goes on to the next."""
        self.moving = None
        return self.link.advance_now()

    cdef int drop_head(self) except -1:
        """The head was aborted before it had a taker."""
        return self.pop()

    # How long it waits
    cdef int note_held(self) except -1:
        """What came with this input waits."""
        cdef int waiting = self.waiting_now()
        if waiting <= 0:
            self.held_since = None
            return 0
        if self.held_since is None:
            self.held_since = deque()
        while <int>len(self.held_since) > waiting:
            self.held_since.popleft()
        while <int>len(self.held_since) < waiting:
            self.held_since.append(recorder.now_us)
        return 0

    cdef int leave_line(self) except -1:
        """The oldest that waits, or what has just come, goes on or back."""
        self.came_us = recorder.now_us
        if self.held_since:
            self.came_us = self.held_since.popleft()
        return 0

    cdef int return_to_line(self, unsigned long long came_us) except -1:
        """What left last comes back to the head."""
        if self.held_since is None:
            self.held_since = deque()
        self.held_since.appendleft(came_us)
        return 0

    cdef int count_in(self) except -1:
        if self.held_since is None:
            self.came_us = recorder.now_us
        else:
            self.leave_line()
        if self.promised_count > 0:
            self.set_promised(self.promised_count - 1)
        self.deliveries_in += 1
        return 0

    cdef int on_unheard(self, Taker taker) except -1:
        """What went to ``taker`` may not be passed on yet, and no outcome will tell, or not soon enough."""
        if taker.cost == 0 or (self.is_circuit and not taker.edge) or taker.way == FORSAKEN_WAY:
            return 0
        self.unheard = _with(self.unheard, taker)
        return 0

    cdef int on_unheard_settled(self, Taker taker) except -1:
        """As above, and no outcome will tell."""
        self.on_unheard(taker)
        if self.is_from_node() and self.unheard is not None and taker in self.unheard:
            self.settled_to = _with(self.settled_to, taker)
        return 0

    cdef int on_settled(self) except -1:
        """One of its deliveries was settled."""
        return self.group.on_returned(self)

    # Credit
    cdef int limit_now(self) noexcept:
        """Fewer of large deliveries: the engine keeps the bytes of each until it is settled, read or not."""
        if self.usual_bytes <= LIGHT_BYTES:
            return self.limit
        return <int>min(<long long>self.limit, MOST_BYTES // self.usual_bytes + 1)

    cdef int weigh(self, size_t size) except -1:
        """Its next delivery has so many bytes."""
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
        """Deliveries that its sender may still start, as far as this router told it, or has, and that wait here."""
        return self.promised_count

    cdef int set_promised(self, int count) except -1:
        if self.is_circuit:
            self.group.promised_to_circuits += count - self.promised_count
        else:
            self.group.promised_to_producers += count - self.promised_count
        self.promised_count = count
        return 0

    cdef int note_credit(self) except -1:
        """Its sender has some now, or none any more, perhaps."""
        if not self.record_level or self.link.is_gone:
            return 0
        if not self.has_moved:
            self.has_moved = True
            recorder.note_moved(self)
        if turn(&self.drought, self.link.credit_now() <= 0, recorder.now_us) and not self.is_restless:
            self.is_restless = True
            recorder.note_restless(self)
        return 0

    def record_at(self, unsigned char level):
        """From now on it is recorded so much of it."""
        cdef bint is_first = level and not self.record_level
        self.record_level = level
        if is_first:
            self.drought = Drought(False, 0, 0)
            self.note_credit()

    def rest(self):
        """It was looked at: what moves from now on is news."""
        self.has_moved = False

    @property
    def credit(self):
        """Deliveries that its sender may still start."""
        return self.link.credit_now()

    @property
    def kept_count(self):
        """It keeps what its takers keep, and their links tell."""
        return None

    @property
    def moved_count(self):
        return self.deliveries_in

    @property
    def starves(self):
        """Its sender has no credit, as far as that is recorded."""
        return self.record_level != 0 and self.drought.is_on

    def take_starved_us(self):
        """How long its sender had no credit since this was asked last."""
        self.is_restless = False
        return take_us(&self.drought, recorder.now_us) if self.record_level else 0

    cdef int top_up(self, int count) except -1:
        """Raise the sender's credit by ``count`` deliveries."""
        # What crossed a reduction waits here on credit that counted as taken back.
        self.set_promised(max(self.promised_count, self.held_now()) + count)
        self.link.grant_now(count)
        return self.note_credit()

    cdef bint needs_float(self) noexcept:
        """It holds no credit and nothing that waits."""
        return self.promised_count == 0 and self.moving is None and not self.has_queued()

    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept:
        """Of a circuit: how many producers its ingress says are behind it."""
        self.weight = max(1, producers_of(delivery))
        return 0

    cdef int waiting_now(self) noexcept:
        """Deliveries that came on its credit, and are not counted in."""
        cdef int count = pn.link_queued(self.link.raw) - (self.moving is not None)
        return max(0, count) + (0 if self.backlog is None else len(self.backlog))

    cdef int held_now(self) noexcept:
        """What was promised is what waits here and what its sender may still start."""
        return max(0, self.link.credit_now()) + self.waiting_now()

    def hear_credit(self):
        """Its sender may have been given some, or have given some back."""
        self.set_promised(0 if self.link.is_gone else self.held_now())
        self.note_credit()

    cdef int reduce(self, int count) except -1:
        """Take back all that was promised but ``count``, or what waits; deliveries that cross it still come."""
        cdef int waiting = self.waiting_now()
        if self.is_draining:
            return 0  # its sender is giving all of it back, and would not be asked any more
        self.link.set_credit_now(max(0, count - waiting))
        self.note_credit()
        return self.set_promised(max(count, waiting))

    def revoke(self):
        """Take back all credit by flow; deliveries that cross it still come."""
        if self.link.is_open_now():
            self.reduce(0)

    @property
    def is_moving(self):
        """A delivery is half read."""
        return self.moving is not None

    @property
    def may_be_drained(self):
        """By a consumer of an anycast: the sender is a client, for whom this address is all of its link, or a router."""
        return self.is_from_node() or self.guard is not None


cdef class Taker(DeliveryOwner):
    """An outgoing link in a group. ``cost`` is the path's; 0 for a local one. ``edge`` as in `Inlet.shuns`.

    ``upstream`` is the one inlet whose deliveries may go here (a multicast branch), None for any. ``is_broker``: this
    router's own link to a broker. ``is_for_settled``: a branch of what producers here send settled.
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
    ):
        self.link = link
        self.group = group
        self.cost = cost
        self.upstream = upstream
        self.is_stream = is_stream
        self.way = LARGE_WAY if is_stream else SETTLED_WAY if is_for_settled else SHARED_WAY
        self.is_ours = cost > 0 or is_broker
        self.is_broker = is_broker
        self.number = _next_number()
        self.weight = 1
        self.credit_count = link.credit_now()
        self.had_credit = self.credit_count > 0
        asked = link.remote_settle_modes[0] if cost == 0 and not is_broker else SEND_MIXED
        self.presettles = asked == SEND_SETTLED
        self.wants_outcomes = is_broker or asked == SEND_UNSETTLED
        self.max_message_bytes = link.remote_max_message_bytes
        self.record_level = group.record_level
        recorder.note(self, True, None)
        link.owner = self
        self.note_move()
        self.note_drain(True)

    # Events
    cdef int on_delivery_event(self, pn_delivery_t *delivery) except -1:
        raise AssertionError("an outgoing link has no deliveries of its peer's")

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
        """What its receiver has may be other than a second ago."""
        if self.record_level and not self.has_moved:
            self.has_moved = True
            recorder.note_moved(self)
        return 0

    def record_at(self, unsigned char level):
        """From now on so much of it is recorded."""
        self.record_level = level
        self.note_move()

    def rest(self):
        """It was looked at: what moves from now on is news."""
        self.has_moved = False

    @property
    def kept_count(self):
        """Complete deliveries of which its receiver has given no outcome."""
        return self.unsettled_count - (self.moving is not None)

    @property
    def moved_count(self):
        return self.deliveries_out

    cdef int note_drain(self, bint has_more) except -1:
        """Its receiver asked for what there is, and for the rest of its credit, perhaps. [2.6.7]"""
        cdef bint is_asked = self.credit_count > 0 and pn.link_get_drain(self.link.raw)
        if is_asked and (has_more or not self.is_asked):
            if not self.drains:
                recorder.note_restless(self)
            self.drains += 1
        self.is_asked = is_asked
        return 0

    def take_drains(self):
        """How often its receiver asked since this was asked last."""
        found, self.drains = self.drains, 0
        return found

    cdef int on_room(self) except -1:
        return 0 if self.link.is_gone else self.group.on_taker_room(self)

    def on_established(self, link):
        self.max_message_bytes = self.link.remote_max_message_bytes
        self.group.on_established(link)

    def on_left(self, closed, error):
        recorder.note(self, False, error)
        self.has_left_in_order = self.cost == 0 and not self.edge and self.link.has_peer_left_in_order(error)
        self.group.on_taker_leaving(self)
        self.abandon()
        self.group.on_taker_left(self, closed, error)

    def on_gone(self):
        recorder.note(self, False, None)
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
        """Forget the carrier; the engine's delivery is the caller's to settle or abort."""
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
        self.note_move()
        return _end(carrier)

    def abandon(self):
        """What was handed to this link is in doubt: its senders are told so. It takes nothing more."""
        cdef Carrier carrier
        cdef bint is_given_back
        recorder.note(self, False, None)
        self.is_closing = True
        self.set_credit(0)
        # The oldest first: in this order they are offered to others.
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
        """True when it was not written to its end. One that is not complete is aborted, or it would end as if it were."""
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
            # Carried out now: after its link and session were freed the engine would trip over it.
            pn.transport_pending(self.link.endpoint.transport)
        return is_unwritten

    cdef int _note_written_in_session(self) except -1:
        """Where the session has ended, what the engine carries out now makes it forget what it wrote on other links."""
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
        """A new delivery on its link, with a tag of our own."""
        cdef unsigned char tag[TAG_BYTES]
        cdef int size
        if self.on_start is not None:
            self.on_start()
        self.last_tag += 1
        size = write_tag(tag, self.last_tag, self.weight)
        return self.link.start_now(<const char *>tag + TAG_BYTES - size, size)

    cdef int miss(self) except -1:
        """A copy goes out without it."""
        if self.copies_missed == self.copies_told:
            recorder.note_restless(self)
        self.copies_missed += 1
        return 0

    def take_missed(self):
        """Copies that it missed since this was asked last."""
        found, self.copies_told = self.copies_missed - self.copies_told, self.copies_missed
        return found

    # Credit
    @property
    def credit(self):
        """Deliveries it takes now."""
        return self.credit_count

    cdef int set_credit(self, int credit) except -1:
        if self.is_member and not self.is_stream:
            if not self.is_near_now():
                self.group.credit_of_circuits += credit - self.credit_count
            else:
                self.group.credit_of_locals += credit - self.credit_count
        self.credit_count = credit
        return 0

    cdef int sync(self) except -1:
        """Read the engine's count; a delivery under way is in it until finished."""
        if self.is_closing_now and self.way != LEFT_WAY:
            return 0
        self.set_credit(self.link.credit_now() - (self.moving is not None))
        if self.credit_count > 0:
            self.had_credit = True
        return 0

    def sync_credit(self):
        self.sync()

    cdef bint is_near_now(self) noexcept:
        """A consumer or broker of this router, or an edge router whose uplink it is: circuits that end here end there."""
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
        """A delivery is half written."""
        return self.moving is not None

    # Membership: whose credit its group counts
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
        """It is to end once nothing is outstanding on it: it takes nothing more."""
        return self.is_closing_now

    @is_closing.setter
    def is_closing(self, bint value):
        cdef bint is_needed_again = self.is_closing_now and not value
        self.is_closing_now = value
        self.group.version += 1
        if is_needed_again:
            self.sync()

    @property
    def is_left(self):
        """Another circuit took its place: it ends when all that went there was passed on."""
        return self.way == LEFT_WAY

    def go_on(self):
        """It is needed again, and takes what its peer granted meanwhile."""
        self.is_closing = False
        self.group.on_credit(self)

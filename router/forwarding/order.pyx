"""Keep an inlet's deliveries in order when the next delivery takes another circuit than the deliveries before.

The inlet asks each earlier circuit by a barrier: an empty, unsettled delivery that the egress gives to no consumer and
answers once all deliveries before the barrier were passed on. The tag of a barrier says 0 producers (`Taker.start`). A
barrier on a circuit that many addresses share is a message that names one address, and asks for this address alone. An
outcome also shows that a delivery was passed on, but may come much later, if the consumer settles in batches. A broker
answers no barrier, but settles soon, so the broker's outcomes are waited for.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from router.forwarding.ends cimport FORSAKEN_WAY, LEFT_WAY, Carrier, Inlet, Taker
from router.forwarding.fan cimport Fan, start_fan
from wire.delivery cimport is_terminal
from wire.proton cimport ACCEPTED_STATE, pn, pn_delivery_t


cdef bint may_take(Inlet inlet, int way, object egress) except -1:
    """True if the inlet's next delivery may take ``way``, the kind of link: shared, pre-settled or large.

    After a change of way, deliveries wait until those on the other ways were passed on; barriers are sent to find out.
    ``egress``: the router to which the delivery goes; deliveries to another egress have other consumers, and are not
    waited for.
    """
    if inlet.way != way:
        if not note_under_way(inlet):
            return False
        inlet.way = way
        inlet.has_other_ways = True
    return not inlet.has_other_ways or _are_passed_on(inlet, way, egress)


cdef bint note_under_way(Inlet inlet) except -1:
    """Note at the inlet each circuit that has deliveries of the inlet without an outcome, to be asked by a barrier.

    Return False if a broker has such a delivery, whose outcome has to be waited for.
    """
    cdef Carrier carrier = inlet.newest
    while carrier is not None:
        if not carrier.note_taker():
            return False
        carrier = carrier.older_in
    return True


cdef int leave(dict inlets, Taker left) except -1:
    """Send no more deliveries to ``left``, a circuit that another circuit replaces.

    Each inlet's later deliveries wait until ``left`` has passed on the inlet's earlier deliveries.
    """
    cdef Inlet inlet
    left.is_closing = True
    left.way = LEFT_WAY
    # The group no longer counts the credit of ``left``: this credit is kept for barriers, one for each inlet.
    left.leave()
    for inlet in inlets:
        _note_left(inlet, left)
    return 0


cdef int _note_left(Inlet inlet, Taker left) except -1:
    cdef Carrier carrier = inlet.newest
    if (inlet.is_circuit and not left.edge) or (left.upstream is not None and left.upstream is not inlet):
        return 0
    while carrier is not None and not carrier.goes_to(left):
        carrier = carrier.older_in
    if carrier is not None:
        inlet.on_unheard(left)
    if inlet.unheard is not None and left in inlet.unheard:
        inlet.has_other_ways = True
    return 0


cdef bint has_passed_on(dict inlets, Taker left) except -1:
    """True if the replaced circuit ``left`` is known to have passed on all its deliveries; else send it barriers.

    One barrier is sent for each inlet, as soon as ``left`` has credit. The answer may then be True at a later call.
    """
    cdef Inlet inlet
    cdef bint has = True
    for inlet in inlets:
        has = _has_passed_on(inlet, left) and has
    return has


cdef bint _has_passed_on(Inlet inlet, Taker left) except -1:
    if inlet.unheard is None or left not in inlet.unheard:
        return True
    if inlet.unheard[left] is None and left.credit_count > 0 and left.moving is None:
        inlet.unheard[left] = _ask(inlet, left, inlet.unheard)
    return False


cdef int give_up_order(dict inlets, Taker left) except -1:
    """Let deliveries of the inlets no longer wait for the earlier ones on ``left``, a replaced circuit."""
    cdef Inlet inlet
    left.way = FORSAKEN_WAY
    for inlet in inlets:
        if inlet.unheard is not None:
            inlet.unheard.pop(left, None)
    return 0


cdef bint _are_passed_on(Inlet inlet, int way, object egress) except -1:
    """True if all the inlet's deliveries to ``egress`` on other ways than ``way`` are known to be passed on.

    Send barriers to the circuits of which that is not known. A circuit known to stall is not waited for.
    """
    cdef Taker taker
    cdef dict unheard = inlet.unheard
    cdef bint are = True, are_others = False
    for taker in list(unheard or ()):
        if not taker.link.is_open_now():
            del unheard[taker]
            continue
        if taker.way == way:
            continue
        are_others = True
        if taker.egress != egress:
            continue
        if unheard[taker] is None and taker.credit_count > 0 and taker.moving is None:
            unheard[taker] = _ask(inlet, taker, unheard)
        elif unheard[taker] is None:
            if _is_known_to_stall(taker):
                continue
            inlet.group.on_blocked(taker)
            if taker.group is not inlet.group:
                taker.group.on_barrier_blocked()
        are = False
    inlet.has_other_ways = are_others
    return are


cdef bint are_all_passed_on(Inlet inlet) except -1:
    """True if all the inlet's deliveries, on every circuit, are known to be passed on.

    Send barriers to the circuits of which that is not known. A circuit known to stall is not waited for.
    """
    cdef Taker taker
    cdef dict unheard = inlet.unheard
    cdef bint are = True
    for taker in list(unheard or ()):
        if not taker.link.is_open_now():
            del unheard[taker]
        elif unheard[taker] is None and _is_answered(inlet, taker):
            del unheard[taker]
        elif unheard[taker] is None and _is_known_to_stall(taker):
            continue
        else:
            are = False
            if unheard[taker] is None and taker.credit_count > 0 and taker.moving is None:
                unheard[taker] = _ask(inlet, taker, unheard)
            elif unheard[taker] is None:
                inlet.group.on_blocked(taker)
    return are


cdef bint _is_known_to_stall(Taker taker) noexcept:
    return taker.is_stalled or (taker.way == LEFT_WAY and taker.is_skipped)


cdef bint has_only_barriers(Taker left) except -1:
    """True if the replaced circuit ``left`` has no unsettled deliveries but barriers.

    Barriers are the last deliveries that are sent to a replaced circuit.
    """
    cdef Carrier carrier = left.newest
    while isinstance(carrier, Barrier):
        carrier = carrier.older_out
    return carrier is None


cdef bint _is_answered(Inlet inlet, Taker taker) except -1:
    """True if no barrier is needed, since all anycast deliveries of ``inlet`` at ``taker`` had an outcome."""
    cdef Carrier carrier = inlet.newest
    if not inlet.group.takes_recalls or (inlet.settled_to is not None and taker in inlet.settled_to):
        return False
    while carrier is not None:
        if carrier.taker is taker:
            return False
        carrier = carrier.older_in
    return True


cdef Barrier _ask(Inlet inlet, Taker taker, dict unheard):
    cdef Barrier barrier = Barrier.__new__(Barrier)
    barrier.asker = inlet
    barrier.unheard = unheard
    barrier.outgoing = _start_empty(taker)
    taker.hold(barrier)
    if taker.group is not inlet.group:
        # The circuit is one of several addresses: the barrier asks for the deliveries to the address of the inlet.
        named = _addressed(inlet.group.name_now())
        taker.link.send_now(PyBytes_AS_STRING(named), PyBytes_GET_SIZE(named))
    taker.link.finish_now()
    taker.end_move()
    return barrier


cdef bytes _addressed(bytes name):
    """Return an empty message whose field `to` is ``name``. [3.2.4]"""
    cdef bytes fields = b"\x40\x40\xb1" + len(name).to_bytes(4, "big") + name
    return b"\x00\x53\x73\xd0" + (len(fields) + 4).to_bytes(4, "big") + b"\x00\x00\x00\x03" + fields + b"\x00\x53\x75\xa0\x00"


cdef pn_delivery_t *_start_empty(Taker taker) except NULL:
    cdef int weight = taker.weight
    taker.weight = 0
    try:
        return taker.start()
    finally:
        taker.weight = weight


@cython.final
@cython.no_gc
cdef class Barrier(Carrier):
    """A barrier, an empty delivery that was sent over a circuit and is not answered yet.

    The answer says that the egress has passed on all deliveries before the barrier.

    ``asker``: the inlet whose next delivery waits for the answer. ``unheard``: the inlet's dict from circuit to
    barrier, which loses the circuit when the answer comes.
    """

    cdef int on_taker_disposition(self) except -1:
        cdef Taker taker = self.taker
        cdef pn_delivery_t *outgoing = self.outgoing
        cdef size_t state = pn.delivery_remote_state(outgoing)
        if not pn.delivery_settled(outgoing) and not is_terminal(state):
            return 0
        taker.drop(self)
        pn.delivery_settle(outgoing)
        taker.link.endpoint.mark()
        # Only the outcome ACCEPTED is an answer: a router on the path that gave the barrier back knows nothing about
        # earlier deliveries, and another barrier has to be sent.
        return self._tell(taker, state == ACCEPTED_STATE)

    cdef int on_taker_lost(self, bint is_unwritten) except -1:
        """Forget the barrier, whose circuit is lost: the circuit's deliveries are lost, too, and not waited for."""
        self.asker = self.unheard = None
        return 0

    cdef int _tell(self, Taker taker, bint is_over) except -1:
        cdef Inlet inlet = self.asker
        # The reference cycle between inlet and barrier is broken here, since the garbage collector does not see it.
        self.asker = None
        if self.unheard.get(taker) is self:
            if is_over:
                del self.unheard[taker]
                if inlet.settled_to is not None:
                    inlet.settled_to.pop(taker, None)
            else:
                self.unheard[taker] = None
        return inlet.group.on_returned(inlet)


# Functions for the router at which a barrier arrives.
cdef int _count_in(Inlet inlet) except -1:
    """Take one from the credit promised to the inlet's sender, which used it for a barrier; count no delivery."""
    return inlet.set_promised(max(0, inlet.promised_count - 1))


cdef bint answer_barrier(Inlet inlet) except -1:
    cdef pn_delivery_t *delivery = inlet.head_now()
    inlet.leave_head()
    _count_in(inlet)
    pn.delivery_update(delivery, ACCEPTED_STATE)
    pn.delivery_settle(delivery)
    inlet.link.endpoint.mark()
    inlet.on_settled()
    return True


cdef Fan start_barriers(Inlet inlet, list branches):
    """Pass the barrier at the inlet's head on to each of the multicast ``branches``; return the fan of its copies."""
    cdef Taker taker
    _count_in(inlet)
    for taker in branches:
        taker.weight = 0
    try:
        return start_fan(inlet, inlet.head_now(), branches, inlet.take_prefix(), True)
    finally:
        for taker in branches:
            taker.weight = 1

"""Anycast: choose one taker for each delivery, balanced over the takers with credit, or the closest.

balanced: the taker with the least sum of outstanding deliveries and path cost. closest: the taker with the least path
cost of all takers, with credit or without; with ``spills``, of the takers with credit. Equal takers get deliveries in
turn. A delivery that a taker gives back, or that was not written when its taker was lost, is offered from a copy to the
next best taker, at most once to each taker: by the ingress to all takers, by an egress to its own consumers.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from router.forwarding.address cimport AddressGroup
from router.forwarding.candidates cimport note_again, note_choice, note_refusal, note_wait
from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport LARGE_WAY, LEFT_WAY, SHARED_WAY, Carrier, Inlet, Taker, has_had
from router.forwarding.head cimport WHOLE_BYTES, is_let_down
from router.forwarding.move cimport Move, start_move, too_large
from router.forwarding.order cimport are_all_passed_on, may_take, note_under_way
from router.forwarding.ranking cimport Ranking
from router.forwarding.recall cimport Recalls, ask_back
from router.forwarding.too_large cimport TooLarge
from router.forwarding.turns cimport USUAL_LEVEL, Turns, level_of
from wire.core cimport CHUNK_BYTES
from wire.proton cimport TRANSACTIONAL_STATE, pn, pn_delivery_t
from recording.decisions cimport OFFERED_AGAIN
from recording.records cimport ABORTED, Recorder

from addressing.priority import DEFAULT_PRIORITY

# The part of `path_wait_s` for which a delivery that a consumer gave back waits at its egress for another consumer.
cdef double SHARE_OF_EGRESS = 0.25

cdef enum:
    # A group with more takers ranks them, and goes on so: among fewer, a look at each is cheaper.
    MANY_TAKERS = 16
    # When so many of the best takers may not have a delivery, such as those of full connections, all are looked at.
    MOST_LEFT_OUT = 8
    # The cost of no taker.
    ANY_COST = -2
    # The largest number of producers behind a circuit that the tag of a delivery can tell: the number has one byte.
    MOST_WEIGHT = 255


cdef inline bint _may_have(Taker taker, Inlet inlet, list tried, size_t size, int cost) except -1:
    """True if ``taker``, which has credit, may have the inlet's message of ``size`` bytes.

    The taker's cost has to be ``cost``, unless that is ANY_COST. None of ``tried`` may have the message. Without
    ``tried``, the taker's connection must have room.
    """
    if not inlet.may_feed(taker) or (cost != ANY_COST and taker.cost != cost):
        return False
    if tried is None and not taker.link.is_writable_now():
        return False
    return not (taker.max_message_bytes and size > taker.max_message_bytes) and (
        tried is None or not has_had(tried, taker)
    )


cdef bint _is_stuck(Inlet inlet, object egress) except -1:
    """True if the inlet's next delivery to ``egress`` has to wait, since a replaced circuit there has no credit.

    The barrier that asks about the inlet's earlier deliveries on that circuit needs credit.
    """
    cdef Taker taker
    for taker in inlet.unheard or ():
        if taker.way == LEFT_WAY and taker.egress == egress and taker.credit_count <= 0:
            return True
    return False


cdef class Anycast(AddressGroup):
    """The group of an anycast address at one router, or of a sharded queue: gives each delivery to one taker.

    Deliveries from circuits go only to near takers (consumers, brokers and edge routers at this router), so no delivery
    travels in a loop.
    """

    def __init__(
        self, address, int phase, timers, settings, owner, actions, Copies copies, Recorder recorder, *,
        bint closest=False, bint spills=False, bint is_retransmitted=False, bint may_be_full=False, **options,
    ):  # fmt: skip
        super().__init__(address, phase, timers, settings, owner, actions, copies, recorder, **options)
        self.is_retransmitted = is_retransmitted
        self.may_be_full = may_be_full
        self.hold_s = settings.hold_s(is_retransmitted=is_retransmitted)
        self.is_closest = closest
        self.is_strict = closest and not spills
        self.takes_recalls = True
        self.is_of_queue = phase == 1

    @property
    def treatment(self):
        return "closest" if self.is_closest else "balanced"

    @property
    def asks_producers(self):
        return True

    # Credit
    cdef int credit_for(self, Inlet inlet) except? -2147483648:
        cdef int near = self.promised_to_producers, far = self.promised_to_circuits
        if self.is_strict:
            return self.nearest_credit(inlet) - far - near
        if inlet.is_circuit:
            return self.credit_of_locals - far - max(0, near - self.credit_of_circuits)
        return self.credit_of_locals + self.credit_of_circuits - self._credit_at(inlet.shuns) - far - near

    cdef int _credit_at(self, int edge) except -1:
        """Return the credit of the taker that leads to the edge router on connection ``edge``; 0 if there is none."""
        cdef Taker taker = self.at_edges.get(edge) if edge and self.at_edges is not None else None
        return taker.credit_count if taker is not None else 0

    cdef int nearest_cost(self, Inlet inlet, list tried, size_t size) except -2:
        """Return the least path cost of the takers that may have the inlet's message of this size, not in ``tried``.

        Takers without credit count, too; -1 if there is no such taker.
        """
        cdef Taker taker
        cdef int found = -1
        for taker in self.takers:
            if taker.is_closing_now or (found >= 0 and taker.cost >= found):
                continue
            if not inlet.may_feed(taker) or (taker.max_message_bytes and size > taker.max_message_bytes):
                continue
            if tried is None or not has_had(tried, taker):
                found = taker.cost
            if found == 0:
                break
        return found

    cdef int nearest_credit(self, Inlet inlet) except? -2147483648:
        cdef Taker taker
        cdef int credit = 0, cost = self.nearest_cost(inlet, None, 0)
        for taker in self.takers:
            if taker.cost == cost and not taker.is_closing_now and inlet.may_feed(taker):
                credit += taker.credit_count
        return credit

    cdef bint has_local(self) noexcept:
        cdef Taker taker
        for taker in self.takers:
            if taker.is_near_now():
                return True
        return False

    cdef int top_up_now(self, Inlet inlet) except -1:
        if self.leads_nowhere(inlet):
            return self.exclude(inlet)
        return AddressGroup.top_up_now(self, inlet)

    cdef bint leads_nowhere(self, Inlet inlet) noexcept:
        """True if the inlet gets no credit: its deliveries have no taker, or the inlet rests.

        An inlet rests after its router recalled deliveries, until a taker here that it may feed has credit.
        """
        if inlet.is_circuit:
            return inlet.is_resting or not self.has_local()
        return inlet.is_resting or (inlet.shuns and not self.has_other_than(inlet))

    def add_taker(self, Taker taker):
        if taker.edge:
            if self.at_edges is None:
                self.at_edges = {}
            self.at_edges[taker.edge] = taker
        self.takers_listed = None
        if self.ranking is None and len(self.takers) >= MANY_TAKERS:
            self._rank_all()
        if self.ranking is not None:
            taker.is_ranked = True
            self.ranking.update(taker)
        super().add_taker(taker)
        if self.unwanted:
            unwanted, self.unwanted = self.unwanted, None
            for inlet in unwanted:
                self._renewals().renew_soon(inlet)

    def forget_inlet(self, Inlet inlet):
        if self.unwanted:
            self.unwanted.pop(inlet, None)
        super().forget_inlet(inlet)

    cdef bint _forget_taker(self, Taker taker) except -1:
        self.takers_listed = None
        if taker.is_ranked:
            taker.is_ranked = False
            self.ranking.leave_out(taker)
        return AddressGroup._forget_taker(self, taker)

    def on_taker_left(self, Taker taker, closed, error):
        if taker.edge and not taker.is_stream and self.at_edges.get(taker.edge) is taker:
            del self.at_edges[taker.edge]
        super().on_taker_left(taker, closed, error)
        for move in self.retries or ():
            if (<Move>move).timer is None and not self.has_another_for(move):
                self._limit_retry(move)
        if not self.has_local():
            self.timers.after(self.hold_s, self._give_back)
        if self.is_strict:
            # The takers that are now the nearest may have more credit than the taker that left: the inlets are granted
            # more.
            self.offer_credit()

    def _give_back(self):
        """Release the deliveries from circuits that wait here, if no consumer, broker or edge router here takes them.

        No consumer had these deliveries, so their ingress may send them to takers at other routers.
        """
        cdef Inlet inlet
        if self.has_local():
            return
        for inlet in list(self.inlets):
            if inlet.is_circuit:
                inlet.revoke()
                self.exclude(inlet)
                self.waiting.discard(inlet)
                self.released += inlet.release_held()

    # Methods about recalls of deliveries from circuits whose consumers have no credit, and about inlets that rest.
    cdef int on_credit(self, Taker taker) except -1:
        if self.has_resting and taker.credit_count > 0:
            self._wake_if_writable(taker)
        if len(self.takers) > 1:
            self.watch_circuits()
        return AddressGroup.on_credit(self, taker)

    def add_inlet(self, Inlet inlet):
        cdef Inlet other
        if self.has_resting and inlet.is_from_node():
            # The new circuit replaces a resting circuit, or stands beside it, and so rests, too: with credit on the new
            # circuit, the ingress would send the recalled deliveries here again.
            for other in self.inlets:
                inlet.is_resting = inlet.is_resting or (other.is_resting and other.ingress == inlet.ingress)
        super().add_inlet(inlet)

    cdef int watch_circuits(self) except -1:
        if self.recalls is None:
            self.recalls = Recalls(self, self.timers, self.settings.path_wait_s, self.is_strict)
        return self.recalls.watch()

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        if carrier is not None:
            self._recall_further(carrier)
        elif not self._has_ready_for(inlet):
            self._rest(inlet.ingress)
            self.released += inlet.release_recalled(self.copies)
        return True

    cdef int _recall_further(self, Carrier carrier) except -1:
        """Pass a recall of the carrier's delivery on: to a broker, or between an edge router and the interior routers.

        A broker hears only of a delivery that waits at its full queue.         A delivery that another router has is recalled from that router. A delivery that a taker gave back, and that
        waits here for another taker, goes back to the router that recalls it.
        """
        cdef Move move
        if not isinstance(carrier, Move):
            return 0
        move = <Move>carrier
        if move.taker is None and self.retries and move in self.retries:
            self._on_late(move)
        elif move.taker is not None and (move.taker.cost or move.is_late) and move.may_be_recalled():
            ask_back(move)
        return 0

    cdef int _rest(self, object ingress) except -1:
        """Let the inlets from router ``ingress`` rest, and revoke their credit, before their deliveries are given back.

        With credit, that router would send the deliveries here again.
        """
        cdef Inlet inlet
        cdef Taker taker
        self.has_resting = True
        for inlet in self.inlets:
            if inlet.is_from_node() and inlet.ingress == ingress:
                inlet.is_resting = True
                inlet.revoke()
        for taker in self.takers:
            if taker.is_near_now() and taker.credit_count > 0 and not taker.link.is_writable_now():
                taker.link.endpoint.wait(taker)
        return 0

    cdef int on_taker_room(self, Taker taker) except -1:
        """Go on with the inlets that rest, or wait, if the taker has credit and its link is writable again."""
        if taker not in self.takers or taker.credit_count <= 0:
            return 0
        if self.has_resting:
            self._wake_if_writable(taker)
            self.offer_credit()
        return self.kick() if self.waiting.levels else 0

    cdef int _wake_if_writable(self, Taker taker) except -1:
        """Wake resting inlets if the taker's link is writable; else wait for room: its credit is of no use yet."""
        if taker.link.is_writable_now():
            return self._wake(taker)
        return taker.link.endpoint.wait(taker)

    cdef int _wake(self, Taker taker) except -1:
        """Let each inlet that may feed ``taker`` rest no longer, and top it up, since the taker has credit."""
        cdef Inlet inlet
        cdef list woken = []
        self.has_resting = False
        for inlet in self.inlets:
            if inlet.is_resting and inlet.may_feed(taker):
                inlet.is_resting = False
                woken.append(inlet)
            self.has_resting = self.has_resting or inlet.is_resting
        for inlet in woken:
            self.top_up_now(inlet)
        return 0

    cdef bint _has_ready_for(self, Inlet inlet) except -1:
        cdef Taker taker
        cdef int cost = self.nearest_cost(inlet, None, 0) if self.is_strict else 0
        for taker in self.takers:
            if self.is_strict and taker.cost != cost:
                continue
            if taker.can_take_now() and inlet.may_feed(taker) and taker.link.is_writable_now():
                return True
        return False

    # Movement
    cdef bint has_ready_taker(self) noexcept:
        cdef Taker taker
        if self.ranking is not None:
            return len(self.ranking.heap) > 0
        for taker in self.takers:
            if taker.can_take_now():
                return True
        return False

    cdef bint may_pass_on(self) noexcept:
        cdef Taker taker
        for taker in self.takers if self.ranking is None else self.ranking.heap:
            if taker.can_take_now() and taker.link.is_writable_now():
                return True
        return False

    cdef int on_moved(self, Taker taker) except -1:
        if self.has_resting and taker.credit_count > 0:
            # The taker was only busy when an ingress recalled the deliveries that waited here, and has credit: the
            # resting inlets are woken.
            self._wake_if_writable(taker)
            self.offer_credit()
        return self.kick() if self.waiting.levels or self.retries or self.drains is not None else 0

    cdef bint pass_barrier(self, Inlet inlet) except -1:
        # A broker may get the next delivery over another link of this router: the barrier is held until the broker has
        # given an outcome for the earlier deliveries.
        if not note_under_way(inlet):
            self.wait_for_taker(inlet)
            return False
        # The barrier is also held for deliveries that went on over circuits, to an edge router or another router, but
        # for ``path_wait_s`` at most.
        if are_all_passed_on(inlet):
            inlet.barrier_due_s = 0
        elif not self._is_barrier_late(inlet):
            self.wait_for_taker(inlet)
            return False
        return AddressGroup.pass_barrier(self, inlet)

    cdef bint _is_barrier_late(self, Inlet inlet) except -1:
        """True once the barrier at the inlet's head has waited ``path_wait_s``: then it is answered in any case.

        So a stuck consumer delays the deliveries behind the barrier by this time at most. The first call starts the
        time.
        """
        if not inlet.barrier_due_s:
            inlet.barrier_due_s = self.timers.now + self.settings.path_wait_s
            self.timers.after(self.settings.path_wait_s, self.go_on)
        return self.timers.now >= inlet.barrier_due_s

    cdef bint is_for_nobody(self, Inlet inlet) noexcept:
        cdef pn_delivery_t *delivery = inlet.head_now()
        if delivery is NULL:
            return False
        return pn.delivery_aborted(delivery) or (is_let_down(delivery) and not inlet.is_from_client())

    cdef bint drop_head(self, Inlet inlet) except -1:
        cdef pn_delivery_t *delivery = inlet.head_now()
        if not pn.delivery_aborted(delivery):
            return inlet.release_head()
        inlet.recorder.write_untaken(inlet.record_level, inlet.number, inlet.head_size(delivery), ABORTED)
        inlet.drop_head()
        inlet.count_in()
        pn.delivery_settle(delivery)
        return True

    cdef Carrier begin(self, Inlet inlet):
        cdef pn_delivery_t *delivery = inlet.head_now()
        cdef Taker taker
        cdef Move move
        cdef size_t size
        cdef bint is_partial, is_large, may_offer_again
        if delivery is NULL:
            return None
        if pn.delivery_remote_state(delivery) == TRANSACTIONAL_STATE:
            return self.refuse_transaction(inlet, delivery)
        size = inlet.head_size(delivery)
        is_partial = inlet.is_head_partial(delivery)
        # A partial delivery waits for its end, since it would block a link that it shares with others. From CHUNK_BYTES
        # on, the delivery goes over a link of its own, a stream, and need not wait.
        if is_partial and size < CHUNK_BYTES:
            return None
        is_large = is_partial or size > WHOLE_BYTES
        taker = self.choose(inlet, is_large, size)
        if taker is None:
            taker = self._who_is_too_small(inlet, size)
            if taker is not None:
                return self._turn_away_from(inlet, delivery, taker, size)
            if self.recording:
                note_wait(self.recording, self.takers, inlet, size, self._nearest_recorded(inlet, None, size))
            self.wait_for_taker(inlet)
            return None
        inlet.weigh(size)
        inlet.count_in()
        may_offer_again = not is_large and not pn.delivery_settled(delivery) and self.may_offer_again(inlet)
        if inlet.is_from_node():
            inlet.hear_weight(delivery)
            inlet.barrier_due_s = 0
        if taker.cost and not taker.is_stream:
            taker.weight = min(max(1, self.sharing.behind(taker)), MOST_WEIGHT)
            if len(self.takers) > 1:
                self.watch_circuits()
        move = start_move(inlet, delivery, taker, taker.start())
        if self.recording:
            self.record_choice(move, taker, None, size)
        move.copy = inlet.take_prefix()
        if move.copy is not None:
            move.is_read = not is_partial
            if move.is_read:
                inlet.moving = None
        elif may_offer_again and size <= CHUNK_BYTES:
            move.copy = PyBytes_FromStringAndSize(NULL, size)
            inlet.link.recv_into(PyBytes_AS_STRING(move.copy), size)
            move.is_read = True
            inlet.pop()
        if move.is_read and may_offer_again:
            move.keep(self.copies)
        return move

    cdef Carrier _turn_away_from(self, Inlet inlet, pn_delivery_t *delivery, Taker taker, size_t size):
        cdef Move move = <Move>self.refuse(inlet, delivery, too_large(inlet, taker))
        move.is_too_large = True
        if self.recording:
            move.decide(note_refusal(
                self.recording, self.takers, inlet, size, self._nearest_recorded(inlet, None, size)
            ))  # fmt: skip
        return move

    cdef int _nearest_recorded(self, Inlet inlet, list tried, size_t size) except -3:
        return self.nearest_cost(inlet, tried, size) if self.is_strict else ANY_COST

    cdef int record_choice(self, Move move, Taker taker, list tried, size_t size) except -1:
        """Note in the decision record why ``taker``, which has begun the delivery of ``move``, was chosen."""
        cdef Inlet inlet = move.inlet
        move.decide(note_choice(
            self.recording, self.takers, inlet, taker, self.turn, tried, size, self.is_closest,
            self._nearest_recorded(inlet, tried, size),
        ))  # fmt: skip
        return 0

    cdef int offer_to(self, Move move, Taker taker) except -1:
        """Offer the returned delivery of ``move`` to ``taker``."""
        self.retried += 1
        if self.recording:
            self._record_again(move, taker)
        return move.offer(taker)

    cdef int _record_again(self, Move move, Taker taker) except -1:
        cdef size_t size = PyBytes_GET_SIZE(move.copy)
        move.end_decision(OFFERED_AGAIN)
        move.decide(note_again(
            self.recording, self.takers, move.inlet, taker, self.turn, move.tried or [], size, self.is_closest,
            self._nearest_recorded(move.inlet, move.tried or [], size),
        ))  # fmt: skip
        return 0

    cdef int on_too_large(self, Inlet inlet, size_t size) except -1:
        return self._renewals().note(inlet, size)

    cdef int on_undeliverable(self, Inlet inlet) except -1:
        if not inlet.is_from_node():
            if self.unwanted is None:
                self.unwanted = {}
            self.unwanted[inlet] = None
        return 0

    cdef TooLarge _renewals(self):
        if self.too_large is None:
            self.too_large = TooLarge(self, self.timers, self.settings)
        return self.too_large

    cdef Taker _who_is_too_small(self, Inlet inlet, size_t size):
        """Return one of the takers that the inlet may feed if each refuses a message of ``size`` bytes, else None."""
        cdef Taker taker, found = None
        for taker in self.takers:
            if taker.is_closing_now or not inlet.may_feed(taker):
                continue
            if not taker.max_message_bytes or size <= taker.max_message_bytes:
                return None
            found = taker
        return found

    cdef Taker choose(self, Inlet inlet, bint is_large, size_t size):
        cdef Taker taker, best = self.best_of(inlet, None, size)
        if best is None:
            self.wait_for_room(inlet)
            return None
        taker = self.way_to(best, inlet, is_large, size)
        if taker is None and _is_stuck(inlet, best.egress):
            best = self._best_elsewhere(inlet, best.egress, size)
            return self.way_to(best, inlet, is_large, size) if best is not None else None
        return taker

    cdef Taker _best_elsewhere(self, Inlet inlet, object egress, size_t size):
        """Return the best taker with credit and room that does not lead to ``egress``; None if there is none.

        At ``egress`` the inlet's next delivery would have to wait.
        """
        cdef Taker taker, best = None
        cdef int cost = self.nearest_cost(inlet, None, size) if self.is_strict else 0
        for taker in self.takers:
            if not taker.can_take_now() or taker.egress == egress or not taker.link.is_writable_now():
                continue
            if self.is_strict and taker.cost != cost:
                continue
            if not inlet.may_feed(taker) or (taker.max_message_bytes and size > taker.max_message_bytes):
                continue
            if best is None or taker.unsettled_count + taker.cost < best.unsettled_count + best.cost:
                best = taker
        return best

    cdef Taker way_to(self, Taker taker, Inlet inlet, bint is_large, size_t size):
        """Return the link to use: the taker itself, or for a large delivery the inlet's stream beside the taker.

        Return None while the inlet must not change between the two, since deliveries on the other link may not be
        passed on yet; and while the stream cannot take a delivery.
        """
        if not taker.is_ours:
            return taker
        # A complete delivery above CHUNK_BYTES, but not above WHOLE_BYTES, may take either link: it takes the stream if
        # the inlet's last delivery did, else the shared link.
        is_large = is_large or (inlet.way == LARGE_WAY and size > CHUNK_BYTES)
        if not may_take(inlet, LARGE_WAY if is_large else SHARED_WAY, taker.egress):
            return None
        return self.owner.open_stream(self, taker, inlet) if is_large else taker

    cdef int wait_for_room(self, Inlet inlet) except -1:
        """Have the inlet wait for room at the connections of takers with credit that it may feed.

        A delivery begun on a full connection would block the inlet, while another taker may have room first.
        """
        cdef Taker taker
        for taker in self.takers if self.ranking is None else self.ranking.heap:
            if taker.can_take_now() and inlet.may_feed(taker):
                taker.link.endpoint.wait(inlet)
        return 0

    cdef int wait_for_taker_room(self) except -1:
        cdef Taker taker
        for taker in self.takers if self.ranking is None else self.ranking.heap:
            if taker.can_take_now() and not taker.link.is_writable_now():
                taker.rank = self.priority - DEFAULT_PRIORITY
                taker.link.endpoint.wait(taker)
        return 0

    cdef Taker best_of(self, Inlet inlet, list tried, size_t size):
        """Return the best taker with credit for a message of the inlet, of ``size`` bytes; None if there is none.

        None of ``tried`` is chosen. Without ``tried``, only a taker is chosen whose connection has room.
        """
        cdef int cost = self.nearest_cost(inlet, tried, size) if self.is_strict else ANY_COST
        cdef Taker best
        if self.ranking is None:
            best = self._best_listed(inlet, tried, size, cost)
        else:
            best = self._best_ranked(inlet, tried, size, cost)
        if best is not None:
            self.turn += 1
            best.last_turn = self.turn
            if best.is_ranked:
                self.ranking.update(best)
        return best

    cdef Taker _best_listed(self, Inlet inlet, list tried, size_t size, int cost):
        cdef Taker taker, best = None
        cdef int value, best_value = 0
        if self.takers_listed is None:
            self.takers_listed = list(self.takers)
        for taker in self.takers_listed:
            if not taker.can_take_now():
                continue
            value = taker.cost if self.is_closest else taker.unsettled_count + taker.cost
            # Of equal takers, the one whose last turn is longest ago is the best.
            if best is not None and (value > best_value or (value == best_value and taker.last_turn >= best.last_turn)):
                continue
            if _may_have(taker, inlet, tried, size, cost):
                best, best_value = taker, value
        return best

    cdef Taker _best_ranked(self, Inlet inlet, list tried, size_t size, int cost):
        cdef Taker taker, best = None
        cdef list left_out = []
        while self.ranking.heap and len(left_out) < MOST_LEFT_OUT:
            taker = self.ranking.heap[0]
            if _may_have(taker, inlet, tried, size, cost):
                best = taker
                break
            self.ranking.leave_out(taker)
            left_out.append(taker)
        for taker in left_out:
            self.ranking.update(taker)
        if best is None and len(left_out) == MOST_LEFT_OUT:
            return self._best_listed(inlet, tried, size, cost)
        return best

    cdef int _rank_all(self) except -1:
        cdef Taker taker
        self.ranking = Ranking(self.is_closest)
        for taker in self.takers:
            taker.is_ranked = True
            self.ranking.update(taker)
        return 0

    cdef int on_ranked(self, Taker taker) except -1:
        return self.ranking.update(taker)

    # Retries
    cdef bint may_offer_again(self, Inlet inlet) except -1:
        """True if a copy of the inlet's delivery is worth keeping, since a second taker may have the delivery.

        Always True at an ingress, since takers may come. For a delivery from a circuit, True only if a second taker may
        have it here.
        """
        if not inlet.is_circuit:
            return True
        if self.offerable_version != self.version:
            self.offerable, self.offerable_version = self._count_offerable(), self.version
        return self.offerable > 1

    cdef int _count_offerable(self) noexcept:
        cdef Taker taker
        cdef int count = 0
        for taker in self.takers:
            if taker.is_near_now() and not taker.is_closing_now:
                # The circuit to an edge router counts as two takers: the edge router gives waiting deliveries back when
                # its consumers leave, and another taker may be here by then. So a copy is kept for an edge router
                # alone, too.
                count += 2 if taker.edge else 1
        return count

    cdef bint retransmits(self, Inlet inlet) except -1:
        """True at the ingress of the inlet's producer if the address has ``retransmit``.

        No other router sends again, since the ingress's copy of the message counts the attempts.
        """
        return self.is_retransmitted and not inlet.is_from_node()

    cdef bint retry(self, Carrier carrier) except -1:
        cdef Move move = <Move>carrier
        cdef Taker taker
        if self.is_dead or move.copy is None or move.inlet.is_lost:
            return False
        taker = self.another_for(move)
        if taker is not None:
            self.offer_to(move, taker)
            return True
        if move.taker is not None and not self.has_another_for(move):
            return False
        self.hold_retry(move)
        return True

    cdef bint take_over(self, Move move) except -1:
        """Offer a delivery that came back over a shared circuit to this address's takers, now or later.

        Return False if its consumers gave it back, and the address has takers at no other router.
        """
        cdef Taker taker
        if self.is_dead:
            return False
        taker = self.another_for(move)
        if taker is not None:
            self.offer_to(move, taker)
            return True
        if move.taker is not None and not move.is_untried and not self.has_another_for(move):
            egresses = frozenset([(<Taker>each).egress for each in move.tried or ()])
            if not self.owner.is_taken_beside(self, egresses):
                return False
        self.hold_retry(move)
        return True

    cdef bint has_ready_beside(self, Inlet inlet, object egress) except -1:
        """True if a taker that the inlet may feed, and that does not lead to ``egress``, has credit and room."""
        cdef Taker taker
        cdef int cost = self.nearest_cost(inlet, None, 0) if self.is_strict else ANY_COST
        for taker in self.takers:
            if taker.can_take_now() and taker.egress != egress and _may_have(taker, inlet, None, 0, cost):
                return True
        return False

    cdef Taker taker_at_once(self, Inlet inlet, size_t size):
        """Return the local consumer that may have a message of the circuit ``inlet`` at once; None if it has to wait."""
        cdef Taker taker
        if self.is_dead or self.waiting.levels or self.retries or self.drains is not None:
            return None
        taker = self.best_of(inlet, None, size)
        return taker if taker is not None and not taker.cost else None

    cdef int hold_retry(self, Move move) except -1:
        """Hold the delivery of ``move``, which its taker gave back, until another taker can have the delivery.

        The delivery is released after ``hold_s``, or sooner at an egress (`_limit_retry`), unless no consumer had the
        delivery, it came over no circuit, and a taker exists that may still get it.
        """
        if move.taker is not None:
            move.let_go()
        if self.retries is None:
            self.retries = {}
        self.retries[move] = None
        if not move.is_untried or move.inlet.is_circuit or not self.has_another_for(move):
            self._limit_retry(move)
        return 0

    cdef int _limit_retry(self, Move move) except -1:
        cdef double wait_s = self.hold_s
        if move.inlet.is_circuit and move.tried is not None:
            wait_s = self.settings.path_wait_s * SHARE_OF_EGRESS
        move.timer = self.timers.after(wait_s, lambda: self._on_late(move))
        return 0

    cdef Taker another_for(self, Move move):
        """Return a taker with credit that may have the returned delivery of ``move`` now, or None."""
        return self.best_of(move.inlet, move.tried or [], PyBytes_GET_SIZE(move.copy))

    cdef bint has_another_for(self, Move move):
        """True if a taker exists that may have the returned delivery of ``move``, now or when the taker has credit."""
        cdef Taker taker
        for taker in self.takers:
            if not taker.is_closing_now and move.suits(taker):
                return True
        return False

    def _on_late(self, Move move):
        """Give the returned delivery of ``move`` back to its sender.

        No other taker could have it in time, or the sending router recalled it.
        """
        self.retries.pop(move, None)
        self.released += 1
        move.give_back()

    cdef list retries_now(self):
        """Return the returned deliveries that may be offered to takers now, in the order in which to offer them."""
        return list(self.retries)

    cdef bint serve(self) except -1:
        cdef Move move
        cdef Turns turns
        if not self.retries:
            return AddressGroup.serve(self)
        turns = Turns()
        for move in self.retries_now():
            turns.add(move, level_of(move.copy) if move.is_waiting else USUAL_LEVEL)
        return self.serve_in_turn(turns)

    cdef bint offer_again(self, Carrier carrier) except -1:
        cdef Move move = <Move>carrier
        cdef Taker taker
        if self.retries is None or move not in self.retries:
            return False
        taker = self.another_for(move) if move.is_waiting else None
        if taker is not None or not move.is_waiting:
            del self.retries[move]
        if taker is None:
            return False
        self.offer_to(move, taker)
        return True

    def give_up(self):
        cdef Move move
        super().give_up()
        if self.is_dead and self.retries:
            retries, self.retries = self.retries, None
            for move in retries:
                move.give_back()

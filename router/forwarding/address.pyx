"""The common part of anycast and multicast groups: the inlets (incoming links) and takers (outgoing links) of an
address at this router, and the credit between them.

Inlets get more credit than takers have, by a float of one for each producer: every inlet with a reachable taker holds
at least one credit or a waiting delivery, since an AMQP sender without credit cannot say that it has a message.
Deliveries beyond the takers' credit wait unread on their link. Counts are deliveries.
"""

from router.forwarding.candidates cimport note_untaken
from router.forwarding.copies cimport Copies
from router.forwarding.credit cimport CreditSharing, room_of
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from router.forwarding.move cimport Move, start_refusal
from router.forwarding.order cimport answer_barrier, give_up_order, has_passed_on, leave
from router.forwarding.tags cimport is_barrier
from router.forwarding.turns cimport Turns
from router.forwarding.waiting cimport WaitingInlets
from wire.proton cimport RELEASED_STATE, pn, pn_delivery_t
from recording.records cimport Recorder

from addressing.priority import DEFAULT_PRIORITY
from router.forwarding.drain import Drains
from router.forwarding.settings import AddressSnapshot
from wire.outcome import rejected

_NO_TRANSACTIONS = rejected("amqp:not-implemented", "transactions are not supported on an address without a broker")


cdef class AddressGroup(Group):
    """Base class of anycast and multicast groups: the inlets and takers of one address and phase at this router.

    ``user`` is the user whose messages share the group of a pattern of queues; None for any other group. ``egress`` is
    the router to which the addresses of an anycast ``pattern`` share a circuit; None for any other group.
    ``owner`` opens circuits, advertises takers, and drops an unused group. The group reports to the owner by
    ``actions`` (`router.forwarding.actions`), which the owner takes after each input, and marks itself in
    ``actions.changed`` when an inlet or taker came or went. Only what cannot wait is a call of the owner (`GroupOwner`
    in the stub).
    """

    def __init__(
        self, address, int phase, timers, settings, owner, actions, Copies copies, Recorder recorder, *,
        int priority=DEFAULT_PRIORITY, record_level=None, user=None, egress=None, pattern=None,
    ):  # fmt: skip
        super().__init__(recorder, record_level)
        self.address = address
        self.phase = phase
        self.user = self.maker = user
        self.egress = egress
        self.pattern = pattern
        self.priority = priority
        self.inlets = {}
        self.takers = {}
        self.waiting = WaitingInlets()
        self.timers = timers
        self.settings = settings
        self.hold_s = settings.path_wait_s
        self.owner = owner
        self.actions = actions
        self.copies = copies

    @property
    def treatment(self):
        return ""

    @property
    def asks_producers(self):
        """True if a consumer's drain of this group is answered only after the producers have been asked to drain."""
        return False

    cdef bytes name_now(self):
        return self.address.name.encode()

    cdef bint has_takers(self) noexcept:
        """True if the group has a taker, of its own or of a filter that matches the group's address."""
        return len(self.takers) > 0

    @property
    def has_taker(self):
        """True if the group has a taker, of its own or of a filter that matches the group's address."""
        return self.has_takers()

    # Methods that add inlets and takers to the group, and remove them.
    cdef int on_changed(self) except -1:
        self.version += 1
        return self.mark_changed()

    cdef int mark_changed(self) except -1:
        """Have the owner bring the group's address up to date after this input: it may need other circuits or links."""
        self.actions.changed[self] = None
        return 0

    def add_inlet(self, Inlet inlet):
        inlet.rank = self.priority - DEFAULT_PRIORITY
        if self.sharing is None:
            self.sharing = CreditSharing(self.inlets, self.top_up, self.timers)
        self.inlets[inlet] = None
        inlet.is_member = True
        self.on_changed()
        if not self.has_takers():
            self._despair_later()
        self.top_up_now(inlet)
        self.look_at_drains()

    def add_taker(self, Taker taker):
        self.takers[taker] = None
        taker.join()
        self.revive()
        self.on_credit(taker)
        self.end_exclusion()

    cdef int exclude(self, Inlet inlet) except -1:
        """Leave the inlet without credit until a taker comes, since no taker here may have its deliveries."""
        self.has_excluded = True
        return 0

    cdef int end_exclusion(self) except -1:
        """Top up all inlets if some had no taker, since a taker came that may have their deliveries."""
        if not self.has_excluded:
            return 0
        self.has_excluded = False
        return self.top_up_all()

    cdef int revive(self) except -1:
        """End the wait for a taker, since the group has one, and have the group's owner look at the address."""
        self.is_dead = False
        if self.hold_timer is not None:
            self.hold_timer.cancel()
            self.hold_timer = None
        return self.on_changed()

    def add_stream(self, Taker taker):
        """Add a taker for one inlet's large deliveries, beside a shared taker. No other inlet may use the stream."""
        if self.streams is None:
            self.streams = {}
        self.streams[taker] = None

    def has(self, Taker taker):
        return taker in self.takers or (self.streams is not None and taker in self.streams)

    cdef bint _forget_taker(self, Taker taker) except -1:
        if self.takers.pop(taker, self) is not self:
            return True
        return self.streams is not None and self.streams.pop(taker, self) is not self

    def forget_inlet(self, Inlet inlet):
        if self.inlets.pop(inlet, self) is self:
            return
        inlet.is_member = False
        self.waiting.discard(inlet)
        self.sharing.forget(inlet)
        inlet.set_promised(0)
        if self.drains is not None:
            self.drains.on_inlet_left(inlet)
        self.deliveries_in_before += inlet.deliveries_in
        self.on_changed()

    def lose_inlet(self, Inlet inlet, error):
        """Remove an inlet that gets nothing more from its sender; the group's owner closes the inlet's streams."""
        self.forget_inlet(inlet)
        self.owner.on_end_lost(self, inlet, error)

    def on_inlet_left(self, Inlet inlet, closed, error):
        self.lose_inlet(inlet, error)
        if closed:
            inlet.link.close()
        else:
            inlet.link.detach()

    def on_taker_left(self, Taker taker, closed, error):
        if self._forget_taker(taker):
            self.deliveries_out_before += taker.deliveries_out
            self.missed_before += taker.copies_missed
        taker.leave()
        self.version += 1
        if self.drains is not None:
            self.drains.on_taker_left(taker)
        self.owner.on_end_lost(self, taker, error)
        if closed:
            taker.link.close()
        else:
            taker.link.detach()
        if not self.has_takers():
            self._despair_later()
        self.on_changed()
        self.is_thorough = True
        self.kick()

    def leave_taker(self, Taker left):
        """Give the taker ``left`` no more deliveries, since a circuit over another path replaces it.

        An inlet's next deliveries wait until the egress has passed on the inlet's deliveries over ``left``, or order is
        given up (`give_up_order_behind`).
        """
        leave(self.inlets, left)

    def has_passed_on(self, Taker left):
        return has_passed_on(self.inlets, left)

    def give_up_order_behind(self, Taker left):
        give_up_order(self.inlets, left)
        self.kick()

    def on_established(self, link):
        """Go on with ``link``, which this router opened, now that its peer has answered the attach.

        The sender of an inlet gets credit. A taker that is not in the group, a circuit over a better path, is reported
        by an action: the owner may put the circuit in place of the old one.
        """
        if isinstance(link.owner, Inlet):
            self.top_up_now(link.owner)
            self.look_at_drains()
        elif not self.has(link.owner) and not link.is_refused:
            self.actions.on_replacement_up(self, link.owner)

    def _despair_later(self):
        for inlet in self.inlets:
            inlet.revoke()
            self.exclude(inlet)
        if self.hold_timer is None:
            self.hold_timer = self.timers.after(self.hold_s, self.give_up)

    def give_up(self):
        """Release all waiting deliveries of the group, unless it has a taker by now.

        Deliveries that still arrive on revoked credit are released, too, until a taker comes.
        """
        if self.hold_timer is not None:
            self.hold_timer.cancel()
            self.hold_timer = None
        if self.has_takers():
            return
        self.is_dead = True
        for inlet in list(self.inlets):
            self.pump(inlet)

    # Edge routers
    cdef bint has_other_than(self, Inlet inlet) noexcept:
        """True if the group has a taker for ``inlet`` other than the edge router that ``inlet`` comes from."""
        cdef Taker taker
        for taker in self.takers:
            if inlet.may_feed(taker):
                return True
        return False

    def give_back_to(self, int edge):
        """Release the waiting deliveries from edge router ``edge``, and revoke its credit, if no other taker exists."""
        cdef Inlet inlet
        for inlet in list(self.inlets):
            if inlet.shuns == edge and not self.has_other_than(inlet):
                inlet.revoke()
                self.exclude(inlet)
                self.waiting.discard(inlet)
                self.released += inlet.release_held()

    # Credit
    cdef int credit_for(self, Inlet inlet) except? -2147483648:
        """Return the takers' credit for deliveries of this inlet, less the credit promised to all inlets."""
        raise NotImplementedError

    cdef int top_up_now(self, Inlet inlet) except -1:
        if not self.takers:
            return self.exclude(inlet)
        return self.sharing.top_up(inlet, self.credit_for(inlet))

    def top_up(self, Inlet inlet):
        self.top_up_now(inlet)

    cdef int top_up_all(self) except -1:
        """Top up every inlet, after a change that may concern inlets that were not short of credit."""
        cdef Inlet inlet
        for inlet in list(self.inlets):
            self.top_up_now(inlet)
        return 0

    cdef int offer_credit(self) except -1:
        """Top up the inlets that were short of credit, since takers may have credit again."""
        return self.sharing.offer() if self.sharing is not None else 0

    cdef int on_returned(self, Inlet inlet) except -1:
        if inlet.is_member:
            self.top_up_now(inlet)
        # Without a taker that has credit and room, the settlement of an earlier delivery can only let a barrier of a
        # router go on. A look at each of a hundred waiting senders for every settlement would cost most of a core.
        if self.waiting.levels and inlet in self.waiting and (inlet.is_from_node() or self.may_pass_on()):
            return self.kick()
        return self.look_at_drains()

    cdef int on_credit(self, Taker taker) except -1:
        if pn.link_get_drain(taker.link.raw) and taker.link.credit_now() > 0:
            self.kick()
            if self.drains is None:
                self.drains = Drains(self, self.timers, self.settings.path_wait_s, self.owner)
            self.drains.begin(taker)
            return 0
        self.kick()
        return self.offer_credit()

    def on_drained(self):
        """Grant credit to the inlets again; called when a consumer's drain is over."""
        cdef Inlet inlet
        if not self.drains:
            self.drains = None
        for inlet in list(self.inlets):
            self.note_use(inlet)
            self.top_up_now(inlet)

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        """Count credit that the inlet's sender gave back no longer as promised, and grant the sender new credit.

        Called when the sender sent a flow. While the sender is asked to drain, only the drain is told.
        """
        cdef int held
        if self.drains is not None:
            self.drains.on_progress(inlet)
        held = inlet.held_now()
        if inlet.promised_count <= held or inlet.is_draining:
            return 0
        inlet.set_promised(held)
        return self.top_up_now(inlet)

    # Movement
    cdef int on_moved(self, Taker taker) except -1:
        return self.kick() if self.waiting.levels else 0

    cdef int wait_for_taker(self, Inlet inlet) except -1:
        # Unread deliveries fill the session's window, which circuits of other addresses share, whose consumers may be
        # faster. Once they take a quarter of the window, the waiting deliveries are read out, and those for which the
        # budget of copies has no room are released.
        if inlet.is_from_node() and inlet.link.session.is_crowded_now():
            self.released += inlet.read_ahead(self.copies, True)
        self.waiting.add(inlet)
        return self.note_use(inlet)

    cdef int note_use(self, Inlet inlet) except -1:
        """Note that the inlet is in use, and so has a share of scarce credit until a period passes without use."""
        return self.sharing.watch(inlet)

    def go_on(self):
        """Try to pass on the group's waiting deliveries again, since a condition that they may wait for has changed."""
        self.kick()

    cdef int kick(self) except -1:
        """Pass on waiting deliveries of all inlets of the group until no taker accepts any."""
        self.is_kicked = True
        if self.is_kicking:
            return 0  # called again by a delivery that moved and so freed a taker: the loop below goes round again
        self.is_kicking = True
        try:
            while self.is_kicked:
                self.is_kicked = False
                if self.serve():
                    self.is_kicked = True
        finally:
            self.is_kicking = self.is_thorough = False
        return self.look_at_drains()

    cdef int look_at_drains(self) except -1:
        if self.drains is not None:
            self.drains.look()
        return 0

    cdef bint serve(self) except -1:
        """Let each waiting inlet pass on deliveries in its turn; True if another round may pass on more."""
        cdef Inlet inlet
        if len(self.waiting) > 1:
            return self.serve_in_turn(None)
        if len(self.waiting) == 1:
            inlet = self.waiting.take_only()
            if inlet in self.inlets and self.try_step(inlet):
                self._renew_float(inlet)
                self.waiting.add(inlet)
                return True
        return False

    cdef bint serve_in_turn(self, Turns turns) except -1:
        """Pass on deliveries of waiting inlets, and returned deliveries in ``turns``, by the priority of the message.

        A turn of an inlet is one delivery for each producer that the inlet stands for; an interrupted turn continues in
        the next round. Once no taker has credit and room, clients' inlets wait on without a look at them. Return True if
        another round may pass on more.
        """
        cdef Inlet inlet
        cdef int level
        cdef bint has_gone_on, has_failed = False, is_news = False, is_over = False
        cdef list failed = []
        self.waiting.rank_new()
        while True:
            level = -1 if is_over else self.waiting.level_now()
            if turns is not None and turns.level_now() >= max(level, 0):
                has_gone_on = self.offer_again(turns.next())
            elif level < 0:
                break
            else:
                inlet = self.waiting.take_at(level)
                if inlet.head_level() < level:
                    self.waiting.put(inlet, False)  # the head of a higher priority is gone
                    continue
                has_gone_on = self.serve_one(inlet)
                if not has_gone_on:
                    failed.append(inlet)
            # An inlet that could not pass on its head may be able to once another inlet has passed on a delivery.
            is_news = is_news or (has_gone_on and has_failed)
            has_failed = has_failed or not has_gone_on
            is_over = not has_gone_on and not self.is_thorough and not self.may_pass_on()
        for inlet in reversed(failed):
            if inlet in self.waiting:
                self.waiting.put(inlet, True)
        if is_over and self.waiting.levels:
            is_news = self._serve_eager(failed) or is_news
            self.wait_for_taker_room()
        return is_news

    cdef bint serve_one(self, Inlet inlet) except -1:
        """Let an inlet whose turn it is pass on a delivery; True if it did, and then waits for its next turn."""
        if inlet not in self.inlets or not self.try_step(inlet):
            return False
        self._renew_float(inlet)
        inlet.turns += 1
        if inlet.turns < inlet.weight:
            self.waiting.put(inlet, True)
        else:
            inlet.turns = 0
            self.waiting.put(inlet, False)
        return True

    cdef bint _serve_eager(self, list tried) except -1:
        """Go on with inlets whose heads need no further taker, though no taker has credit and room.

        Such a head was begun, is a barrier, or was let down. Return True if an inlet went on; none of ``tried`` is looked at.
        """
        cdef Inlet inlet
        cdef bint is_news = False
        for inlet in list(self.waiting.eager):
            if inlet in tried or inlet not in self.waiting or not self._needs_no_taker(inlet):
                continue
            if inlet in self.inlets and self.try_step(inlet):
                self._renew_float(inlet)
                self.waiting.put(inlet, False)
                is_news = True
        return is_news

    cdef bint _needs_no_taker(self, Inlet inlet) except -1:
        if inlet.moving is not None or inlet.is_discarding():
            return True
        return self.is_for_nobody(inlet) or is_barrier(inlet.head_now())

    cdef bint offer_again(self, Carrier carrier) except -1:
        """Offer the returned delivery of ``carrier`` to another taker; False if the delivery goes on waiting for one.
        """
        return False

    cdef bint may_pass_on(self) noexcept:
        """False if no taker has credit and room for a delivery now, so that a waiting head of a client waits on."""
        return True

    cdef int wait_for_taker_room(self) except -1:
        """Have takers with credit wait for room at their connections, so that the waiting inlets go on then."""
        return 0

    cdef bint has_ready_taker(self) noexcept:
        """True if some taker may accept a delivery now: then a new delivery waits its turn among the waiting inlets."""
        return True

    cdef int on_inlet_room(self, Inlet inlet) except -1:
        # Other inlets may wait for the same room with a more urgent message: all are served in order of priority.
        if len(self.waiting) > 1 and inlet in self.waiting:
            return self.kick()
        return self.pump(inlet)

    cdef int pump(self, Inlet inlet) except -1:
        if self.is_dead:
            return self._turn_away(inlet) if inlet.may_go_on_now() else 0
        if self.waiting.levels and inlet.moving is None and inlet not in self.waiting and self.has_ready_taker():
            self.waiting.add(inlet)
            return self.kick()
        while self.try_step(inlet):
            pass
        self._renew_float(inlet)
        if self.drains is not None:
            self.drains.on_progress(inlet)
        return 0

    cdef int _renew_float(self, Inlet inlet) except -1:
        """Grant the inlet's sender credit if it has none and no delivery of it waits.

        The sender gets at least a float, one credit for each producer behind the inlet, unless the inlet is past its
        limit: without credit a sender cannot show that it has more to send, and the takers may settle much later.
        """
        if inlet.promised_count == 0 and room_of(inlet) >= 0 and inlet.needs_float():
            self.top_up_now(inlet)
        return 0

    def record_decisions(self, unsigned int recording):
        """Note the group's decisions from now on as of the recording with this number; 0: note none."""
        self.recording = recording

    cdef int _turn_away(self, Inlet inlet) except -1:
        """Release the inlet's waiting deliveries, since the group has no taker.

        The rest of a large message whose taker was lost in the middle is first read and discarded.
        """
        cdef Carrier moving = inlet.moving
        if moving is not None:
            moving.advance()
        if self.recording:
            self._release_recorded(inlet)
        else:
            self.released += inlet.release_held()
        return 0

    cdef int _release_recorded(self, Inlet inlet) except -1:
        """Release the inlet's waiting deliveries one by one, with a decision about each."""
        while inlet.release_head():
            self.released += 1
            note_untaken(self.recording, inlet, 0, RELEASED_STATE)
        return 0

    cdef bint try_step(self, Inlet inlet) except -1:
        if not inlet.may_go_on_now():
            return False
        if not inlet.is_discarding():
            if inlet.moving is None and self.is_for_nobody(inlet):
                return self.drop_head(inlet)
            if inlet.is_from_node() and inlet.moving is None and is_barrier(inlet.head_now()):
                return self.pass_barrier(inlet)
            return self.step(inlet)
        if not inlet.release_head():
            return False
        self.released += 1
        return True

    cdef bint is_for_nobody(self, Inlet inlet) noexcept:
        """True if no taker is to get the inlet's head, since the sender aborted the delivery or was lost."""
        return False

    cdef bint drop_head(self, Inlet inlet) except -1:
        """Drop a head that is for no taker (`is_for_nobody`); False while the end of the head has not arrived."""
        raise NotImplementedError

    cdef bint pass_barrier(self, Inlet inlet) except -1:
        """Answer the barrier at the inlet's head, since all deliveries before the barrier were passed on; return True.

        After the answer the ingress may send the next deliveries over another circuit. A subclass returns False while
        the barrier has to wait.
        """
        return answer_barrier(inlet)

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        inlet.set_promised(inlet.promised_count + 1)
        inlet.deliveries_in -= 1
        self.waiting.discard(inlet)  # its head is another one now, perhaps with another priority
        return self.wait_for_taker(inlet)

    cdef bint step(self, Inlet inlet) except -1:
        """Pass on the inlet's oldest delivery as far as possible; True if the inlet may begin its next delivery."""
        cdef Carrier carrier = inlet.moving
        if carrier is None:
            carrier = self.begin(inlet)
            if carrier is None:
                return False
        if carrier.advance():
            return True
        # Once unread bytes take a quarter of the session's window, the rest of a small delivery is read out, to wait in
        # memory here.
        carrier = inlet.moving
        if carrier is not None:
            self.waiting.note_begun(inlet)
        return inlet.is_from_node() and carrier is not None and inlet.link.session.is_crowded_now() and carrier.read_rest()

    cdef Carrier begin(self, Inlet inlet):
        """Start to pass on the inlet's head to one taker or several; return its carrier, for the caller to advance.

        Return None if no taker can have the head now, or too little of it has arrived: then the inlet waits.
        """
        raise NotImplementedError

    cdef Carrier refuse(self, Inlet inlet, pn_delivery_t *delivery, object outcome):
        """Return a carrier that gives the inlet's head to no taker, but discards it and answers with ``outcome``."""
        cdef Move move
        cdef bint is_whole = not inlet.is_head_partial(delivery)
        cdef bytes prefix = inlet.take_prefix()
        inlet.count_in()
        move = start_refusal(inlet, delivery, outcome)
        if prefix is not None:
            move.sent_bytes = len(prefix)
            if is_whole:
                move.is_read = True
                inlet.moving = None
        return move

    cdef Carrier refuse_transaction(self, Inlet inlet, pn_delivery_t *delivery):
        return self.refuse(inlet, delivery, _NO_TRANSACTIONS)

    def snapshot(self):
        cdef Inlet inlet
        cdef Taker taker
        cdef unsigned long long deliveries_in = self.deliveries_in_before
        cdef unsigned long long deliveries_out = self.deliveries_out_before
        cdef unsigned long long missed = self.missed_before
        cdef int unsettled = 0, circuits = 0, credit = 0
        for inlet in self.inlets:
            unsettled += inlet.unsettled_count
            deliveries_in += inlet.deliveries_in
        for taker in self.takers:
            circuits += taker.cost > 0
            credit += taker.credit_count
            deliveries_out += taker.deliveries_out
            missed += taker.copies_missed
        for taker in self.streams or ():
            deliveries_out += taker.deliveries_out
        return AddressSnapshot(
            address=self.address.text,
            phase=self.phase,
            treatment=self.treatment,
            priority=self.priority,
            inlets=len(self.inlets),
            takers=len(self.takers),
            circuits=circuits,
            credit=credit,
            unsettled=unsettled,
            deliveries_in=deliveries_in,
            deliveries_out=deliveries_out,
            released=self.released,
            retried=self.retried,
            copies_missed=missed,
        )

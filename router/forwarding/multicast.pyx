"""Multicast: every taker gets a copy, local consumers as well as one circuit per branch of the tree.

A delivery begins only when every taker has credit, so the slowest taker holds the producers back. A taker without
credit for ``stall_timeout_s``, or longer for a branch, is left out of deliveries until it grants credit.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.candidates cimport note_copies
from router.forwarding.ends cimport LARGE_WAY, LEFT_WAY, SETTLED_WAY, SHARED_WAY, Carrier, Inlet, Taker
from router.forwarding.head cimport WHOLE_BYTES, ReturnMark
from router.forwarding.fan cimport FanCopy, Fan, start_fan
from router.forwarding.move cimport too_large
from router.forwarding.order cimport are_all_passed_on, has_only_barriers, may_take, note_under_way, start_barriers
from router.forwarding.watch cimport TakerWatch, end_watch, watch
from wire.core cimport CHUNK_BYTES
from wire.proton cimport TRANSACTIONAL_STATE, pn

cdef enum:
    PLENTY = 1 << 30

# How long a pre-settled delivery waits for a taker without credit before it goes out without this taker: just enough
# to absorb the float of several producers, which send more at once than takers have credit for.
cdef double _PRESETTLED_PATIENCE_S = 0.1
# How long a taker may accept no byte of a started, pre-settled copy before the copy is given up: longer than the wait
# for credit, since giving up loses the whole copy, and a connection may be slow for a moment.
cdef double _PRESETTLED_BLOCKED_S = 1.0


cdef class Multicast(AddressGroup):
    """The group of a multicast address at one router: gives a copy of each delivery to each taker.

    A delivery that arrives over a circuit goes to consumers here, and to branches of the circuit's own tree only.
    """

    @property
    def treatment(self):
        return "multicast"

    def add_inlet(self, Inlet inlet):
        AddressGroup.add_inlet(self, inlet)
        if not inlet.is_circuit:
            # The branches of the tree are opened now, not after this input: an anonymous producer already has a
            # message, and the message is for all takers.
            self.owner.open_branches(self)

    # Methods that are called as branches of the tree come and go
    def on_taker_leaving(self, Taker taker):
        if taker.cost and taker.upstream is None:
            self.begin_change()
            self.mark_changed()

    def begin_change(self):
        """Hold deliveries of producers at this router until `end_change` finds the tree complete, for ``hold_s`` at
        most.

        No delivery may go to some branches of the tree only. Deliveries that arrive over circuits go on.
        """
        self.is_changing = True

    def end_change(self, bint is_complete):
        if is_complete:
            self.lacks_since_s = 0
        elif not self.lacks_since_s:
            self.lacks_since_s = self.timers.now
        self.is_changing = not is_complete and self.timers.now < self.lacks_since_s + self.hold_s
        if not self.is_changing:
            self.kick()

    cdef list takers_for(self, Inlet inlet, bint is_settled):
        """Return the takers of the inlet's deliveries: consumers here, and the branches of the inlet's tree.

        The branches of a producer here are the circuits without ``upstream``: with ``is_settled`` those for pre-settled
        deliveries, else the shared ones.
        """
        cdef Taker taker
        is_settled = is_settled and not inlet.is_circuit
        if inlet.audience is None or inlet.audience_version != self.version or inlet.is_audience_settled != is_settled:
            inlet.audience = []
            inlet.audience_version = self.version
            inlet.is_audience_settled = is_settled
            for taker in self.takers:
                if not taker.is_closing_now and not taker.is_stream and self._may_feed(inlet, taker, is_settled):
                    inlet.audience.append(taker)
        return inlet.audience

    cdef bint _may_feed(self, Inlet inlet, Taker taker, bint is_settled) noexcept:
        if taker.upstream is not None:
            return taker.upstream is inlet
        if inlet.shuns and taker.edge == inlet.shuns:
            return False
        return taker.cost == 0 or (not inlet.is_circuit and (taker.way == SETTLED_WAY) == is_settled)

    cdef list _takers_now(self, Inlet inlet, bint is_large, bint is_settled):
        """Return the takers that get a copy of the inlet's head; None while the head has to wait.

        A producer's pre-settled deliveries, and large deliveries, have branches of their own, so that they neither
        block other deliveries nor wait for them. The head waits until the other branches have passed on the inlet's
        earlier deliveries; a large head also waits until its own branches can take it.
        """
        cdef list takers, locals_ = [], streams
        cdef Taker taker
        cdef int shared = 0
        if inlet.is_circuit:
            return self.takers_for(inlet, is_settled)
        is_settled = is_settled and not is_large
        if is_settled and not self.is_settled_apart:
            self.is_settled_apart = True
            self.owner.open_branches(self)
        takers = self.takers_for(inlet, is_settled)
        for taker in takers:
            shared += taker.cost > 0
        if not shared:
            return takers
        if not may_take(inlet, LARGE_WAY if is_large else SETTLED_WAY if is_settled else SHARED_WAY, None):
            return None
        if not is_large:
            return takers
        streams = self.owner.open_streams(self, inlet)
        if len(streams) < shared:
            return None
        for taker in streams:
            if not taker.can_take_now():
                return None
        for taker in takers:
            if taker.cost == 0:
                locals_.append(taker)
        return locals_ + streams

    cdef int credit_for(self, Inlet inlet) except? -2147483648:
        cdef Taker taker
        cdef int least = PLENTY
        for taker in self.takers_for(inlet, inlet.sends_settled and self.is_settled_apart):
            if not self._leaves_out(taker, inlet.sends_settled):
                least = min(least, taker.credit_count)
        return (0 if least == PLENTY else least) - self.promised_to_circuits - self.promised_to_producers

    cdef int top_up_now(self, Inlet inlet) except -1:
        if inlet.shuns and not self.has_other_than(inlet):
            return self.exclude(inlet)
        return AddressGroup.top_up_now(self, inlet)

    cdef Carrier begin(self, Inlet inlet):
        cdef pn_delivery_t *delivery = inlet.head_now()
        cdef list takers
        cdef bint is_whole
        cdef size_t size
        if delivery is NULL:
            return None
        if self.is_changing and not inlet.is_circuit:
            self.wait_for_taker(inlet)
            return None
        if pn.delivery_remote_state(delivery) == TRANSACTIONAL_STATE:
            return self.refuse_transaction(inlet, delivery)
        is_whole = not inlet.is_head_partial(delivery)
        size = inlet.head_size(delivery)
        if not is_whole and size < CHUNK_BYTES:
            return None
        takers = self._takers_now(inlet, not is_whole or size > WHOLE_BYTES, pn.delivery_settled(delivery))
        if takers is None:
            self.wait_for_taker(inlet)
            return None
        return self._begin_with(inlet, delivery, takers, is_whole, size)

    cdef Carrier _begin_with(self, Inlet inlet, pn_delivery_t *delivery, list takers, bint is_whole, size_t size):
        cdef Taker taker, too_small = None
        cdef list ready = []
        cdef Fan fan
        cdef bint is_late = False, is_missed = False, is_settled = pn.delivery_settled(delivery), is_left_out
        cdef bint waits_for_room = is_whole and size <= CHUNK_BYTES and self._shares_takers()
        inlet.sends_settled = is_settled
        for taker in takers:
            is_left_out = self._leaves_out(taker, is_settled)
            if taker.max_message_bytes and size + self._added_bytes(taker) > taker.max_message_bytes:
                too_small = taker
            elif waits_for_room and taker.can_take_now() and not is_left_out and not taker.link.is_writable_now():
                is_late = True
                taker.link.endpoint.wait(inlet)
                self.on_late(taker)
                self._watch_late(taker, is_settled)
            elif taker.can_take_now() and not taker.is_spent and (not is_left_out or taker.link.is_writable_now()):
                taker.is_stalled = taker.is_skipped = False
                ready.append(taker)
            elif not is_left_out and not taker.is_deserted:
                is_late = True
                self.on_late(taker)
                self._watch_late(taker, is_settled)
        if is_late or (not takers and not inlet.is_circuit):
            if self.recording:
                note_copies(self.recording, takers, inlet, ready, size, False)
            self.wait_for_taker(inlet)
            return None
        if not ready and too_small is not None:
            return self.refuse(inlet, delivery, too_large(inlet, too_small))
        inlet.weigh(size)
        inlet.count_in()
        if len(ready) < len(takers):
            for taker in takers:
                if taker not in ready and not taker.is_deserted:
                    taker.miss()
                    is_missed = True
        fan = self._start(inlet, delivery, ready, is_whole, is_whole and not is_settled and 0 < size <= CHUNK_BYTES)
        if self.recording:
            fan.decide(note_copies(self.recording, takers, inlet, ready, size, True))
        fan.was_passed_on = is_missed and not ready
        return fan

    cdef bint _shares_takers(self) noexcept:
        """True if takers of this group get deliveries of other groups, too: those of a filter that matches the address.

        A small delivery then begins only when all takers have room. Otherwise a taker without room would keep a begun
        copy, and with it the link of a filter's consumer, from deliveries of other addresses.
        """
        return self.filters is not None or self.is_of_filter

    cdef int _watch_late(self, Taker taker, bint is_settled) except -1:
        if is_settled:
            return self._watch_settled(taker)
        return self._watch(taker, self._patience_s(taker))

    cdef size_t _added_bytes(self, Taker taker) noexcept:
        """Return by how many bytes at most the taker's copy is longer: a filter's consumer gets the address."""
        return self.address_bytes if taker.group.is_of_filter else 0

    cdef bint may_pass_on(self) noexcept:
        cdef Taker taker
        for taker in self.takers:
            if self.holds_up_all(taker):
                return False
        return True

    cdef bint has_ready_taker(self) noexcept:
        return self.may_pass_on()

    cdef bint holds_up_all(self, Taker taker) noexcept:
        """True if no delivery can begin now because of ``taker``, a consumer here, which gets every delivery."""
        if taker.cost or taker.upstream is not None or taker.is_closing_now or taker.can_take_now():
            return False
        return not (taker.is_stalled or taker.is_skipped or taker.is_spent or taker.max_message_bytes)

    cdef int on_late(self, Taker taker) except -1:
        """Called when a delivery has to wait for ``taker``, which has no credit, or is still busy with another one."""
        return 0

    cdef Fan _start(self, Inlet inlet, pn_delivery_t *delivery, list takers, bint is_whole, bint may_go_again):
        cdef ReturnMark mark
        cdef bytes message
        cdef Fan fan
        if inlet.is_circuit or not may_go_again:
            return start_fan(inlet, delivery, takers, inlet.take_prefix(), is_whole)
        mark = inlet.returned_head()
        message = inlet.take_prefix()
        if message is None and (message := inlet.read_rest(delivery)) is not None:
            inlet.pop()
        fan = start_fan(inlet, delivery, takers, message, is_whole)
        if fan.is_read:
            fan.keep(self.copies)
        if mark is not None:
            fan.place, fan.until_s = mark.place, mark.until_s
        return fan

    # Methods about deliveries that no consumer of the multicast got
    cdef bint take_back(self, Carrier carrier) except -1:
        cdef Fan fan = <Fan>carrier
        cdef Inlet inlet = fan.inlet
        cdef ReturnMark mark
        cdef pn_delivery_t *delivery = fan.incoming
        if self.is_dead or inlet.link.has_left or (fan.until_s and self.timers.now > fan.until_s):
            return False
        mark = ReturnMark.__new__(ReturnMark)
        mark.place, mark.until_s = fan.place, fan.until_s or self.timers.now + self.hold_s
        budget = fan.budget
        inlet.drop(fan)
        inlet.return_to_line(fan.counted_us)
        inlet.take_back(delivery, fan.give_kept(), mark, budget)
        self.retried += 1
        self.on_returned_unread(inlet)
        return True

    cdef int on_given_back(self, Taker taker) except -1:
        if taker.upstream is None and not taker.is_spent and not taker.is_closing_now:
            taker.is_spent = True
            self.mark_changed()
        return 0

    cdef bint pass_barrier(self, Inlet inlet) except -1:
        """Pass the barrier at the inlet's head on to every next router in the tree, or answer it if there is none.

        A stalled branch is left out, and an edge router's barrier is answered here. A barrier that was passed on is
        answered when all these routers have answered. Return False while the barrier waits.
        """
        cdef Taker taker
        cdef list branches = []
        cdef bint is_late = False
        if inlet.is_edge:
            # This router is the ingress of an edge router's deliveries, which may have gone over several circuits: the
            # barrier is answered here, once all circuits have passed the deliveries on.
            if note_under_way(inlet) and are_all_passed_on(inlet):
                return AddressGroup.pass_barrier(self, inlet)
            self.wait_for_taker(inlet)
            return False
        for taker in self.takers_for(inlet, inlet.sends_settled):
            if taker.cost and taker.can_take_now():
                branches.append(taker)
            elif taker.cost and not taker.is_stalled and not taker.is_deserted:
                is_late = True
                self.on_blocked(taker)
        if is_late:
            self.wait_for_taker(inlet)
            return False
        if not branches:
            return AddressGroup.pass_barrier(self, inlet)
        return start_barriers(inlet, branches).advance()

    cdef bint _leaves_out(self, Taker taker, bint is_settled) noexcept:
        """True if deliveries go to the other takers without ``taker``, since it stalled.

        Pre-settled deliveries (``is_settled``), which wait less long, also go without a taker that is skipped.
        """
        return taker.is_stalled or (is_settled and taker.is_skipped)

    cdef double _patience_s(self, Taker taker) except -1:
        # A branch is waited for longer, by its depth: a router behind the branch must leave out its own stalled taker
        # first, or this router would leave out the whole branch.
        return self.settings.stall_timeout_s * (1 + taker.cost)

    cdef int _watch_settled(self, Taker taker) except -1:
        """Start a timer for ``taker``, for which a pre-settled delivery waits; at its end the taker may be skipped."""
        cdef double patience_s = _PRESETTLED_PATIENCE_S
        # A started copy is waited for longer, also one at a router behind a branch: meanwhile the branch has no credit.
        # So is a taker that has credit and no room.
        if taker.moving is not None or taker.credit_count > 0 or (taker.cost and taker.had_credit):
            patience_s = _PRESETTLED_BLOCKED_S
        elif taker.cost:
            # A branch without any credit so far is new, and its first credit is on the way: it is waited for longer,
            # too.
            patience_s = self.settings.path_wait_s
        taker.skip_watch = watch(
            taker.skip_watch, taker, self.timers, patience_s * (1 + taker.cost), taker.group._on_skip_watch_end
        )
        return 0

    def _on_skip_watch_end(self, Taker taker):
        cdef TakerWatch ended = taker.skip_watch
        taker.skip_watch = None
        if taker not in self.takers or self._can_begin(taker):
            return
        if (ended.has_moved() or self._waits_for_others(taker)) and not self._holds_up_others(taker):
            self._watch_settled(taker)
            return
        taker.is_skipped = True
        self._go_without()

    cdef bint _can_begin(self, Taker taker) noexcept:
        """True if no delivery has to wait for ``taker``, of this group, before the delivery begins."""
        return taker.can_take_now() and (not self._shares_takers() or taker.link.is_writable_now())

    cdef bint _waits_for_others(self, Taker taker) except -1:
        """True if the producer or another taker holds up the copy that ``taker`` began to get.

        Then ``taker`` is not left out.
        """
        cdef FanCopy copy
        if not isinstance(taker.moving, FanCopy):
            return False
        copy = <FanCopy>taker.moving
        # If the taker has no credit before the first byte of the copy, the taker itself holds up the copy: its credit
        # was taken back.
        return (copy.sent_bytes or taker.link.credit_now() > 0) and taker.link.is_writable_now()

    cdef bint _holds_up_others(self, Taker taker) except -1:
        """True if deliveries of other addresses wait for the copy that ``taker`` gets: that of a filter's consumer."""
        return False

    def _go_without(self):
        cdef Inlet inlet
        self.kick()
        for inlet in list(self.inlets):
            self.top_up_now(inlet)

    cdef int on_blocked(self, Taker taker) except -1:
        """Start the stall timer of ``taker``, for whose room a started copy waits, or for whose credit a barrier waits.

        All other copies of the same delivery wait, too.
        """
        cdef double patience_s = self._patience_s(taker)
        cdef bint is_settled = taker.way == LEFT_WAY and has_only_barriers(taker)
        if is_settled or (isinstance(taker.moving, FanCopy) and (<FanCopy>taker.moving).is_settled()):
            patience_s = min(patience_s, _PRESETTLED_BLOCKED_S * (1 + taker.cost))
        return self._watch(taker, patience_s)

    cdef int _watch(self, Taker taker, double patience_s) except -1:
        # The group of a filter is the one that all addresses' groups with deliveries for the filter's consumers share.
        taker.stall_watch = watch(taker.stall_watch, taker, self.timers, patience_s, taker.group._on_stall_watch_end)
        return 0

    def _on_stall_watch_end(self, Taker taker):
        cdef TakerWatch ended = taker.stall_watch
        cdef FanCopy copy
        cdef bint was_settled = False
        taker.stall_watch = None
        if (taker not in self.takers and taker.way != LEFT_WAY) or self._can_begin(taker):
            return
        if taker.can_take_now() and ended.has_moved():
            self._watch(taker, self._patience_s(taker))
            return
        if isinstance(taker.moving, FanCopy):
            if ended.has_moved() or self._waits_for_others(taker):
                if self._holds_up_others(taker):
                    # The copy goes on; meanwhile the deliveries of other addresses do without the taker.
                    taker.is_stalled = True
                    self._go_without()
                else:
                    self.on_blocked(taker)
                return
            copy = <FanCopy>taker.moving
            was_settled = copy.is_settled()
            copy.give_up()
            taker.miss()
        if was_settled:
            taker.is_skipped = True
        else:
            taker.is_stalled = True
        self._go_without()

    cdef int on_credit(self, Taker taker) except -1:
        # A taker that grants credit but reads nothing stays under watch while its copy is begun, and is left out until
        # its link is writable.
        if taker.credit_count > 0 and taker.moving is None:
            if taker.link.is_writable_now():
                taker.is_stalled = taker.is_skipped = False
            end_watch(taker.stall_watch)
            end_watch(taker.skip_watch)
            taker.stall_watch = taker.skip_watch = None
        return AddressGroup.on_credit(self, taker)

"""One inlet stitched to one taker: credit, drain, dispositions and detach pass through unchanged.

Transit circuits and link routes are relays. The taker's credit is the inlet's: nothing is held here but what the
connection's output makes wait.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from router.forwarding.head cimport is_let_down
from router.forwarding.move cimport start_move
from wire.proton cimport pn, pn_bytes_t

from addressing.book import DEFAULT_PRIORITY
from wire.core import IncomingCore


cdef class Relay(Group):
    """``on_left(end, closed, error)`` is called when either peer leaves; the relay does nothing more then.

    With ``patience``, what crossed a reduction of the taker's credit is given back when that has run out. ``is_transit``:
    both ends lead to routers, of which one has a copy of it.
    """

    def __init__(
        self, incoming, outgoing, on_left, established, guard=None, patience=None, *,
        bint is_transit=False, int priority=DEFAULT_PRIORITY,
    ):  # fmt: skip
        self._is_transit = is_transit
        self._patience = patience
        self._on_left = on_left
        self._on_established = established
        self._rank = priority - DEFAULT_PRIORITY
        self._receive_from(incoming, guard)
        self._stitch(outgoing)

    def _receive_from(self, incoming, guard):
        self.inlet = Inlet(incoming, self, 0, is_circuit=True, guard=guard)
        self.inlet.rank = self._rank
        self.inlet.is_transit = self._is_transit

    def _stitch(self, outgoing):
        self.taker = Taker(outgoing, self)
        self.taker.presettles = False

    cdef int pump(self, Inlet inlet) except -1:
        cdef Carrier move
        cdef pn_delivery_t *delivery
        cdef bint has_dropped = False
        while inlet.may_go_on_now() and (delivery := inlet.link.current_now()) is not NULL:
            if inlet.is_discarding() or (is_let_down(delivery) and not inlet.has_moving() and not inlet.is_from_client()):
                if not inlet.release_head():
                    break
                has_dropped = True
                continue
            move = inlet.moving
            if move is None:
                if self.taker.moving is not None or self.taker.is_closing_now:
                    break
                # The engine would keep what it has no credit for, out of everybody's reach.
                if self.taker.link.credit_now() <= 0:
                    self._give_back_later()
                    break
                move = start_move(inlet, delivery, self.taker, self._start(delivery))
                inlet.deliveries_in += 1
            if not move.advance():
                break
        if has_dropped:
            # The taker's credit for it is still there, and its sender's is used up.
            return self.on_credit(self.taker)
        if self.is_draining and not inlet.link.has_left:
            self.on_sender_flow(inlet)
        return 0

    def _give_back_later(self):
        if self._patience is not None and self._timer is None:
            self._timer = self._patience.after(self._give_back)

    def _give_back(self):
        self._timer = None
        # Behind what came settled others wait for an answer: at a transit router it is dropped.
        self._release(self._is_transit)

    cdef int _release(self, bint with_settled) except -1:
        """What was never written: its sender may try another taker."""
        cdef Inlet inlet = self.inlet
        if inlet.link.is_gone or self.taker.link.is_gone or self.taker.link.credit_now() > 0:
            return 0
        if with_settled:
            inlet.release_held()
        else:
            inlet.release_unsettled()
        return self.on_credit(self.taker)

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        if carrier is not None:
            return False
        if self._patience is not None:
            self._release(False)
        return True

    cdef pn_delivery_t *_start(self, pn_delivery_t *incoming) except NULL:
        """With the sender's own tag; one that came in its place may use tags again that the taker still holds."""
        cdef pn_bytes_t tag = pn.delivery_tag(incoming)
        cdef bytes other
        if not self.senders_before:
            return self.taker.link.start_now(tag.start, tag.size)
        self.taker.last_tag += 1
        other = b"%d/amqpmesh/%d" % (self.senders_before, self.taker.last_tag)
        return self.taker.link.start_now(PyBytes_AS_STRING(other), PyBytes_GET_SIZE(other))

    cdef int on_credit(self, Taker taker) except -1:
        cdef int promised
        if self.inlet.link.is_gone or self.inlet.link.has_left or taker.link.is_gone:
            return 0
        if self.inlet.link.has_peer_left:
            return self.pump(self.inlet)
        promised = taker.link.credit_now() - pn.link_queued(self.inlet.link.raw)
        if pn.link_get_drain(taker.link.raw) and taker.link.credit_now() > 0:
            self.is_draining = True
            self.inlet.link.request_drain(max(0, promised - self.inlet.link.credit_now()))
            return self.pump(self.inlet)
        self.inlet.link.set_credit_now(promised)
        return self.pump(self.inlet) if taker.link.credit_now() > 0 else 0

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        inlet.deliveries_in -= 1
        self._give_back_later()
        return 0

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        """The sender gave its credit back: so do we, once all that it sent before is written."""
        if not self.is_draining or inlet.moving is not None:
            return 0
        if inlet.link.credit_now() <= 0 and pn.link_queued(inlet.link.raw) == 0:
            self.is_draining = False
            inlet.link.end_drain()
            if self.taker.link.is_open_now():
                if pn.link_get_drain(self.taker.link.raw):
                    self.taker.link.drained()
                else:
                    self.on_credit(self.taker)  # the taker wants it after all
        return 0

    def on_inlet_left(self, inlet, closed, error):
        self._on_left(inlet.link, closed, error)

    def on_taker_left(self, taker, closed, error):
        cdef Inlet inlet = self.inlet
        if self._patience is not None and not inlet.link.is_gone:
            inlet.release_held()
        self._on_left(taker.link, closed, error)

    def on_established(self, link):
        self._on_established(link)
        # What the taker granted while nobody listened, in the same breath as its attach.
        self.on_credit(self.taker)

    def replace(self, link):
        """Stitch another link in where one was lost; the other end stays with all it holds."""
        if isinstance(link, IncomingCore):
            self.senders_before += 1
            self._receive_from(link, None)
        else:
            self._stitch(link)
        self.on_credit(self.taker)
        self.pump(self.inlet)

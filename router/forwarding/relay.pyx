"""A relay ties one incoming link (inlet) to one outgoing link (taker): credit, drain, dispositions and detach pass
through unchanged.

Each circuit of another router that passes through this router has a relay, and so has each link route of a client to a
broker. The inlet's sender gets the taker's credit, so a relay holds only deliveries that wait for room on the taker's
connection, or that crossed a reduction of credit.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from router.forwarding.head cimport is_let_down
from router.forwarding.move cimport Move, start_move, start_refusal
from wire.core cimport OutgoingCore
from wire.proton cimport TRANSACTIONAL_STATE, pn, pn_bytes_t
from recording.records cimport Recorder

from addressing.priority import DEFAULT_PRIORITY
from wire.core import IncomingCore
from wire.errors import LinkError
from wire.outcome import rejected

_NO_TRANSACTIONS = rejected("amqp:not-implemented", "the mesh does not support transactions")


cdef class Relay(Group):
    """The group of one inlet and one taker, which pass all deliveries and credit between their peers.

    ``on_left(link, closed, error)`` is called when the peer of either link leaves; the relay does nothing more then.
    ``established(link)`` is called when the peer of a link that this router opened has answered the attach. Both are
    called at once: after ``established``, which answers the attach at the other end, the relay passes credit to that
    end. With ``patience``, deliveries that crossed a reduction of the taker's credit are given back when nothing moved
    at the taker for that long. ``is_of_queue``: a link route for a consumer. ``is_transit``: both ends lead to routers,
    one of which has a copy of each unsettled delivery. No router has a copy of a pre-settled delivery, so with
    ``copies`` such a delivery waits here for credit, read out within this budget, and deliveries behind it may be given
    back.
    """

    def __init__(
        self, on_left, established, Recorder recorder, patience=None, *,
        bint is_transit=False, bint is_of_queue=False, Copies copies=None, int priority=DEFAULT_PRIORITY,
    ):  # fmt: skip
        super().__init__(recorder)
        self._is_transit = is_transit
        self.is_of_queue = is_of_queue
        self._copies = copies
        self._patience = patience
        self._on_left = on_left
        self._on_established = established
        self._rank = priority - DEFAULT_PRIORITY

    def stitch(self, incoming, outgoing, guard=None):
        """Pass deliveries from link ``incoming`` to link ``outgoing``, and credit back, from now on.

        ``guard``: the guard of ``incoming`` if its sender is a client, else None.
        """
        self._receive_from(incoming, guard)
        self._send_to(outgoing)

    def _receive_from(self, incoming, guard):
        self.inlet = Inlet(incoming, self, 0, is_circuit=True, guard=guard)
        self.inlet.rank = self._rank
        self.inlet.is_transit = self._is_transit

    def _send_to(self, outgoing):
        self.taker = Taker(outgoing, self)

    cdef int on_too_large(self, Inlet inlet, size_t size) except -1:
        """Note that the broker's message was too large for the taker, to end the broker's link later (`_part`).

        The link cannot end now, since the caller still moves the delivery.
        """
        self.is_too_small = True
        inlet.link.endpoint.wait(inlet)
        return 0

    def _part(self):
        """End the link of a broker that sent a larger message than the client's link takes. [2.7.3]

        The attach told the broker this maximum size. The client is told why its link ends.
        """
        cdef Inlet inlet = self.inlet
        most = self.taker.max_message_bytes
        error = LinkError(
            "amqp:link:message-size-exceeded",
            f"the broker sent a message that is too large for this link: expected at most {most:,} bytes",
        )
        self.is_too_small = False
        inlet.link.detach(error)
        inlet.on_left(False, error)
        inlet.link.owner = None

    cdef int pump(self, Inlet inlet) except -1:
        cdef Carrier move
        cdef OutgoingCore onward = self.taker.link
        cdef pn_delivery_t *delivery
        cdef bint has_dropped = False
        if self.is_too_small and not inlet.link.is_gone:
            self._part()
            return 0
        while inlet.may_go_on_now() and (delivery := inlet.head_now()) is not NULL:
            if self._is_for_nobody(delivery):
                if not inlet.release_head():
                    break
                has_dropped = True
                continue
            move = inlet.moving
            if move is None and inlet.is_from_client() and pn.delivery_remote_state(delivery) == TRANSACTIONAL_STATE:
                inlet.deliveries_in += 1
                move = start_refusal(inlet, delivery, _NO_TRANSACTIONS)
                has_dropped = True
            if move is None:
                if self.taker.moving is not None or self.taker.is_closing_now:
                    break
                # A delivery is not begun without credit: the engine would keep the delivery, and nobody could give it
                # back.
                if onward.credit_now() <= 0:
                    self._give_back_soon()
                    break
                if inlet.backlog is not None and not onward.is_writable_now():
                    # A message that was read ahead goes in one piece, once the taker's link has room.
                    onward.endpoint.wait(inlet)
                    break
                move = self._begin(delivery)
            if not move.advance():
                break
        if has_dropped:
            # A dropped delivery used up a credit of the sender, but none of the taker: the sender is granted another.
            return self.on_credit(self.taker)
        if self.is_draining and not inlet.link.has_left:
            self.on_sender_flow(inlet)
        return 0

    cdef bint _is_for_nobody(self, pn_delivery_t *delivery) noexcept:
        cdef Inlet inlet = self.inlet
        if inlet.backlog is None and inlet.is_discarding():
            return True
        return is_let_down(delivery) and not inlet.has_moving() and not inlet.is_from_client()

    cdef Carrier _begin(self, pn_delivery_t *delivery):
        cdef Inlet inlet = self.inlet
        inlet.leave_line()
        cdef Move move = start_move(inlet, delivery, self.taker, self._start(delivery))
        move.copy = inlet.take_prefix()
        if move.copy is not None:
            move.is_read = True
            inlet.moving = None
        inlet.deliveries_in += 1
        return move

    cdef int _give_back_soon(self) except -1:
        """Give back what waits for credit here: later, or at once if it is a link route's and crowds a session.

        Unread deliveries take the window of the session, which other links of the consumer's client may share.
        """
        cdef Inlet inlet = self.inlet
        if self._patience is not None and self._copies is None and inlet.link.session.is_crowded_now():
            self._release()
        if inlet.has_queued():
            self._give_back_later()
        return 0

    def _give_back_later(self):
        if self._patience is not None and self._timer is None:
            self._progress = (self.taker.deliveries_out, self.inlet.unsettled_count)
            self._timer = self._patience.after(self._give_back)

    def _give_back(self):
        cdef Inlet inlet = self.inlet
        self._timer = None
        if inlet.link.is_gone or self.taker.link.is_gone:
            return
        if self._progress == (self.taker.deliveries_out, inlet.unsettled_count):
            self._release()
        # Deliveries may still wait, e.g. behind a pre-settled delivery for which the budget has no room: the relay
        # tries later to give them back to their sender.
        if inlet.has_queued() and self.taker.link.credit_now() <= 0:
            self._give_back_later()

    cdef int _release(self) except -1:
        """Release the deliveries that wait here, if the taker has no credit: their sender may try another taker.

        Pre-settled deliveries stay; on a link route, so do the deliveries behind them.
        """
        cdef Inlet inlet = self.inlet
        if inlet.link.is_gone or self.taker.link.is_gone or self.taker.link.credit_now() > 0:
            return 0
        if self._copies is not None:
            inlet.release_behind_settled(self._copies)
        else:
            inlet.release_unsettled()
        return self.on_credit(self.taker)

    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1:
        if carrier is not None:
            return False
        if self._patience is not None:
            self._release()
        return True

    cdef pn_delivery_t *_start(self, pn_delivery_t *incoming) except NULL:
        """Start a delivery at the taker with the sender's own tag, or with a new tag if the sender's link was replaced.

        After a change, the taker's peer may still have unsettled deliveries with the earlier sender's tags. A new tag
        also replaces an empty tag, as some brokers give to pre-settled deliveries: the engine would send no tag.
        [2.7.5]
        """
        cdef pn_bytes_t tag = pn.delivery_tag(incoming)
        cdef bytes other
        if tag.size and not self.senders_before:
            return self.taker.link.start_now(tag.start, tag.size)
        self.taker.last_tag += 1
        other = b"%d/amqpmesh/%d" % (self.senders_before, self.taker.last_tag)
        return self.taker.link.start_now(PyBytes_AS_STRING(other), PyBytes_GET_SIZE(other))

    cdef int on_credit(self, Taker taker) except -1:
        cdef Inlet inlet = self.inlet
        cdef int promised
        if inlet.link.is_gone or inlet.link.has_left or taker.link.is_gone:
            return 0
        if inlet.link.has_peer_left:
            return self.pump(inlet)
        # The engine's credit of the taker's link still includes a delivery under way.
        promised = taker.link.credit_now() - inlet.waiting_now() - inlet.has_moving()
        if pn.link_get_drain(taker.link.raw) and taker.link.credit_now() > 0:
            self.is_draining = True
            inlet.link.request_drain(max(0, promised - inlet.link.credit_now()))
            inlet.note_credit()
            return self.pump(inlet)
        inlet.link.set_credit_now(promised)
        inlet.note_credit()
        return self.pump(inlet) if taker.link.credit_now() > 0 else 0

    cdef int on_returned_unread(self, Inlet inlet) except -1:
        inlet.deliveries_in -= 1
        self._give_back_soon()
        return 0

    cdef int on_sender_flow(self, Inlet inlet) except -1:
        """End the taker's drain if the sender has given its credit back and all its deliveries were passed on.

        If the taker no longer asks for a drain, the sender gets the taker's credit again.
        """
        if not self.is_draining or inlet.moving is not None:
            return 0
        if inlet.link.credit_now() <= 0 and not inlet.has_queued():
            self.is_draining = False
            inlet.link.end_drain()
            if self.taker.link.is_open_now():
                if pn.link_get_drain(self.taker.link.raw):
                    self.taker.link.drained()
                else:
                    self.on_credit(self.taker)  # the taker wants the credit after all
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
        # The taker's peer may have granted credit together with its attach, before the relay got events: the sender
        # gets this credit now.
        self.on_credit(self.taker)

    def replace(self, link):
        """Put ``link`` in place of the relay's lost link of the same direction.

        The link at the other end stays, with all its deliveries.
        """
        if isinstance(link, IncomingCore):
            self.senders_before += 1
            self._receive_from(link, None)
        else:
            self._send_to(link)
        self.on_credit(self.taker)
        self.pump(self.inlet)

"""Deliveries in doubt, which were written to a taker that was lost: report them to the producer, or send them again.

Whether a delivery in doubt was processed is unknown, so its producer hears MODIFIED, delivery-failed. If the address
has ``retransmit``, the ingress sends its copy again instead, with delivery-count raised: the consumer may see the
message twice. A delivery that was once in doubt is never RELEASED. Decision 0022.
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from router.forwarding.ends cimport Inlet
from router.forwarding.move cimport Move
from wire.proton cimport MODIFIED_STATE, pn

from router.forwarding.words import LOST
from wire.delivery import set_outcome
from wire.errors import AmqpError
from wire.header import with_header
from wire.sections import Incomplete, scan


cdef bint send_again(Move move) except -1:
    """Offer the copy of a delivery in doubt to all takers again, also to one that replaces the lost taker.

    Return False if the delivery is not sent again, for want of a copy, of a taker or of ``retransmit``: the caller
    tells its sender of the loss.
    """
    cdef Inlet inlet = move.inlet
    if inlet is None or move.copies is None or not inlet.group.retransmits(inlet):
        return False
    if pn.delivery_settled(move.incoming) or move.is_answered():
        return False
    if not _raise_count(move):
        return False
    if move.taker is not None:
        move.let_go()
    move.is_in_doubt = True
    move.tried = None
    return inlet.group.retry(move)


cdef bint _raise_count(Move move) except -1:
    """Raise the delivery-count in the header of the move's copy; False if the copy is no AMQP message."""
    cdef bytes before = move.copy
    try:
        move.copy = with_header(before, delivery_count=scan(before).delivery_count + 1)
    except (AmqpError, Incomplete):
        return False
    move.copies.used_bytes += PyBytes_GET_SIZE(move.copy)
    move.copies.used_bytes -= PyBytes_GET_SIZE(before)
    return True


cdef int tell_lost(Move move) except -1:
    """Answer the sender of the delivery, whose taker was lost: MODIFIED, delivery-failed.

    A sender that is a router on an anycast circuit hears LOST (`router.forwarding.words`): the ingress may send the
    delivery again.
    """
    if not _comes_over_circuit(move.inlet):
        return move.settle_incoming(MODIFIED_STATE)
    set_outcome(<size_t>move.incoming, LOST)
    return move.settle_incoming(0)


cdef bint _comes_over_circuit(Inlet inlet) noexcept:
    """True if the inlet's sender is a router on an anycast circuit, and not a client, a broker or a link route."""
    return inlet.is_transit or (inlet.is_from_node() and inlet.group.takes_recalls)

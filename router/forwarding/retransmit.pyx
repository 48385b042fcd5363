"""A delivery was written, and who had it is lost: what becomes of it?

Nobody knows whether it was processed, so its producer hears MODIFIED, delivery-failed. Where the address says
``retransmit``, the ingress sends its copy again instead, with delivery-count raised: the consumer may see it twice. What
was in doubt once is never RELEASED. Decision 0022.
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
    """Offer it to others, the one that comes in place of who had it among them. False: its producer is to hear of it."""
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
    """False for bytes that are no AMQP message: they have no header."""
    cdef bytes before = move.copy
    try:
        move.copy = with_header(before, delivery_count=scan(before).delivery_count + 1)
    except (AmqpError, Incomplete):
        return False
    move.copies.used_bytes += PyBytes_GET_SIZE(move.copy)
    move.copies.used_bytes -= PyBytes_GET_SIZE(before)
    return True


cdef int tell_lost(Move move) except -1:
    """Its sender is to know; an ingress, which may send it again, in the words of routers."""
    if not _comes_over_circuit(move.inlet):
        return move.settle_incoming(MODIFIED_STATE)
    set_outcome(<size_t>move.incoming, LOST)
    return move.settle_incoming(0)


cdef bint _comes_over_circuit(Inlet inlet) noexcept:
    """Of an anycast: the sender of a link route may be a client, or a broker."""
    return inlet.is_transit or (inlet.is_from_node() and inlet.group.takes_recalls)

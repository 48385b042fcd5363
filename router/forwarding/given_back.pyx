"""Offer a message of a sharded queue to other consumers here after one said undeliverable-here. [3.4.5]

The broker would never give the message to a link of this router again, though other consumers are here. So the router
offers its copy to each of them, with the delivery-count and annotations from the consumers before. When no other
consumer is there, the broker gets all of that in one outcome. Its link is renewed when another consumer comes.
"""

from router.forwarding.ends cimport Inlet
from router.forwarding.move cimport Move
from wire.proton cimport pn

from wire.annotations import merged, with_encoded
from wire.delivery import remote_outcome, set_outcome
from wire.header import with_header
from wire.outcome import OutcomeCode, Outcome
from wire.sections import scan


cdef bint give_on(Move move, bint is_over) except -1:
    """Handle a taker's MODIFIED, or RELEASED: True when nothing more is to be done about the outcome."""
    cdef Inlet inlet = move.inlet
    cdef object outcome = remote_outcome(<size_t>move.outgoing)
    cdef bint is_first = move.said is None
    if is_first and not outcome.undeliverable_here:
        return False
    move.said = _joined(move.said, outcome)
    if outcome.undeliverable_here and move.copies is not None and _is_offered(move, outcome):
        return True
    inlet.group.on_undeliverable(inlet)
    if is_first:
        return False
    tell_said(move)
    inlet.link.endpoint.mark()
    if is_over:
        move._settle(0)
    return True


cdef bint tell_said(Move move) except -1:
    """Give the sender the consumers' joint outcome; False if there is none."""
    if move.said is None or pn.delivery_settled(move.incoming):
        return False
    set_outcome(<size_t>move.incoming, move.said)
    return True


cdef bint _is_offered(Move move, object outcome) except -1:
    """True if the message goes to another consumer, now or when one has credit."""
    cdef bytes copy = _with_outcome(move.copy, outcome)
    move.copies.used_bytes += len(copy) - len(move.copy)
    move.copy = copy
    return move._is_retried()


def _with_outcome(bytes message, outcome):
    cdef bytes section = merged(b"", outcome.annotations) if outcome.annotations else b""
    if section:
        message = with_encoded(message, section)
    if outcome.delivery_failed:
        message = with_header(message, delivery_count=scan(message).delivery_count + 1)
    return message


def _joined(before, outcome):
    """Join the outcomes of two consumers; the later one decides on undeliverable-here."""
    if before is None:
        return outcome
    return Outcome(
        OutcomeCode.MODIFIED,
        delivery_failed=before.delivery_failed or outcome.delivery_failed,
        undeliverable_here=outcome.undeliverable_here,
        annotations={**(before.annotations or {}), **(outcome.annotations or {})} or None,
    )

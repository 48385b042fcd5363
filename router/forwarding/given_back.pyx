"""Offer a message of a sharded queue to other consumers here after one consumer said undeliverable-here. [3.4.5]

A broker that hears undeliverable-here never gives the message to this router's link again, even if other consumers are
here. So the router first offers its copy to each of these consumers, with the delivery-count and annotations that the
earlier consumers asked for. When no consumer is left to try, the broker gets one outcome that joins all consumers'
outcomes. The broker's link is renewed when a new consumer comes.
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
    """Handle the outcome MODIFIED of a sharded queue's consumer, or a RELEASED after an earlier consumer's MODIFIED.

    Return True if the outcome is dealt with: another consumer gets the message, or the sender got the joint outcome.
    Return False if the caller has to pass the outcome on unchanged. ``is_over``: settle both deliveries after the joint
    outcome.
    """
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
    """Tell a message's sender, without settling, the joint outcome of the consumers here that had the message in turn.

    Return False if none of these consumers said undeliverable-here, or if the sender has settled.
    """
    if move.said is None or pn.delivery_settled(move.incoming):
        return False
    set_outcome(<size_t>move.incoming, move.said)
    return True


cdef bint _is_offered(Move move, object outcome) except -1:
    """Write a consumer's outcome into the copy of the message, and offer the copy to other consumers here.

    Return True if another consumer gets the copy, now or later.
    """
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
    """Join the outcomes of two consumers of one message into one MODIFIED, with the annotations of both.

    The joint outcome says delivery-failed if either does. The later outcome decides on undeliverable-here.
    """
    if before is None:
        return outcome
    return Outcome(
        OutcomeCode.MODIFIED,
        delivery_failed=before.delivery_failed or outcome.delivery_failed,
        undeliverable_here=outcome.undeliverable_here,
        annotations={**(before.annotations or {}), **(outcome.annotations or {})} or None,
    )

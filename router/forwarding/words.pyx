"""Outcomes between routers that clients do not know: annotations of MODIFIED.

These outcomes go as far as the ingress, which tells the producer in outcomes that the producer knows.
"""

from wire.annotations import OWN_PREFIX
from wire.delivery import remote_outcome
from wire.outcome import OutcomeCode, Outcome

_UNWRITTEN = f"{OWN_PREFIX}unwritten"
_LOST = f"{OWN_PREFIX}lost"
_TOO_LARGE = f"{OWN_PREFIX}too-large"

UNWRITTEN = Outcome(OutcomeCode.MODIFIED, annotations={_UNWRITTEN: True})
"""The delivery was written to no consumer. A consumer would say RELEASED."""
LOST = Outcome(OutcomeCode.MODIFIED, delivery_failed=True, annotations={_LOST: True})
"""The taker was lost, a consumer or a path. A consumer that failed would say the same without the annotation."""

TOO_LARGE = Outcome(OutcomeCode.MODIFIED, undeliverable_here=True, annotations={_TOO_LARGE: True})
"""No consumer here takes a message of this size, and none was given it. A consumer elsewhere may."""


cdef Word word_of(pn_delivery_t *outgoing) except *:
    """Return the word in a MODIFIED delivery."""
    annotations = remote_outcome(<size_t>outgoing).annotations
    if annotations is None:
        return NO_WORD
    if _UNWRITTEN in annotations:
        return UNWRITTEN_WORD
    if _TOO_LARGE in annotations:
        return TOO_LARGE_WORD
    return LOST_WORD if _LOST in annotations else NO_WORD

"""Words: outcomes that only routers give to each other, as annotations of the outcome MODIFIED.

A word goes back along the path as far as the ingress of the delivery, which answers the producer with an outcome that
AMQP clients know.
"""

from wire.annotations import OWN_PREFIX
from wire.delivery import remote_outcome
from wire.outcome import OutcomeCode, Outcome

_UNWRITTEN = f"{OWN_PREFIX}unwritten"
_LOST = f"{OWN_PREFIX}lost"
_TOO_LARGE = f"{OWN_PREFIX}too-large"

UNWRITTEN = Outcome(OutcomeCode.MODIFIED, annotations={_UNWRITTEN: True})
"""The word by which a router says that a delivery was written to no consumer.

A consumer that gives a delivery back says RELEASED.
"""
LOST = Outcome(OutcomeCode.MODIFIED, delivery_failed=True, annotations={_LOST: True})
"""The word by which a router says that a consumer, or a further router, was lost with the delivery, which is in doubt.

A consumer that failed to process the message says the same without the annotation.
"""

TOO_LARGE = Outcome(OutcomeCode.MODIFIED, undeliverable_here=True, annotations={_TOO_LARGE: True})
"""The word by which an egress says that no consumer there takes a message of this size.

The ingress may try another egress.
"""


cdef Word word_of(pn_delivery_t *outgoing) except *:
    """Return the word in the outcome MODIFIED that the receiver gave ``outgoing``, NO_WORD if there is none."""
    annotations = remote_outcome(<size_t>outgoing).annotations
    if annotations is None:
        return NO_WORD
    if _UNWRITTEN in annotations:
        return UNWRITTEN_WORD
    if _TOO_LARGE in annotations:
        return TOO_LARGE_WORD
    return LOST_WORD if _LOST in annotations else NO_WORD

"""One outcome of every kind; whether two are the same, errors and annotations included, says `told`."""

from __future__ import annotations

from typing import cast

from mesh.simulation.clients import told as told
from wire import data
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode, rejected, set_outcome
from wire.engine import Pointer, lib, pointer_to

REFUSED = rejected("amqp:not-allowed", "no")
EVERY_KIND = (
    ACCEPTED,
    RELEASED,
    REFUSED,
    rejected("com.example:custom", "a condition that AMQP does not define"),
    Outcome(OutcomeCode.MODIFIED),
    MODIFIED_FAILED,
    Outcome(OutcomeCode.MODIFIED, undeliverable_here=True),
    Outcome(OutcomeCode.MODIFIED, delivery_failed=True, annotations={"why": "broken", "times": 3}),
    Outcome(OutcomeCode.MODIFIED, delivery_failed=True, undeliverable_here=True, annotations={"why": "all of it"}),
)
BY_FIELD: dict[str, Outcome | None] = {
    "accepted": ACCEPTED,
    "rejected": REFUSED,
    "released": RELEASED,
    "modified": MODIFIED_FAILED,
    "settled": None,
}
"""The outcome that counts in each field of the observer's counts; None: the message is sent settled."""

_TRANSACTIONAL = Outcome(cast("OutcomeCode", 0x34))


def set_transactional(delivery: Pointer) -> None:
    """No outcome: the state of a delivery that belongs to a transaction, which nobody declared. [4.5.8]"""
    local = lib.pn_delivery_local(pointer_to("pn_delivery_t", delivery))
    data.write(lib.pn_disposition_data(local), [b"undeclared"])
    set_outcome(delivery, _TRANSACTIONAL)


def outcome_id(outcome: Outcome) -> str:
    flags = {"failed": outcome.delivery_failed, "undeliverable here": outcome.undeliverable_here}
    words = [outcome.kind.name, *(word for word, is_set in flags.items() if is_set)]
    words += [outcome.error.condition] if outcome.error else []
    return " ".join([*words, "annotated"] if outcome.annotations else words)

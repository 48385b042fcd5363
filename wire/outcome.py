"""Outcomes of a delivery: the terminal delivery states as values. [3.4]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from wire.errors import AmqpError


class OutcomeCode(IntEnum):
    """Codes of AMQP's delivery states: the numbers of their descriptors. [3.4]"""

    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


@dataclass(frozen=True, slots=True)
class Outcome:
    """A terminal delivery state with its fields: accepted, rejected, released or modified. [3.4]"""

    kind: OutcomeCode
    error: AmqpError | None = None
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[str, Any] | None = None


ACCEPTED = Outcome(OutcomeCode.ACCEPTED)
RELEASED = Outcome(OutcomeCode.RELEASED)
MODIFIED_FAILED = Outcome(OutcomeCode.MODIFIED, delivery_failed=True)
"""Outcome for a delivery in doubt: it was sent on, and its outcome is not known."""

UNDELIVERABLE_HERE = Outcome(OutcomeCode.MODIFIED, undeliverable_here=True)
"""Outcome for a delivery that no consumer tried, and that must not be sent over the same link again."""


def rejected(name: str, description: str) -> Outcome:
    return Outcome(OutcomeCode.REJECTED, AmqpError(name, description))

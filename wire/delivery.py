"""Deliveries by their engine pointers: no object per delivery, only functions on it.

Spec: AMQP 1.0 [3.4] delivery states; [2.6.12] transferring a message.
Proton pools deliveries: a pointer kept after ``settle`` or after its link went is another, live delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from wire import condition, data
from wire.engine import Pointer, ffi, lib
from wire.errors import AmqpError


class Kind(IntEnum):
    """Descriptor codes of the delivery states. [3.4]"""

    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


@dataclass(frozen=True, slots=True)
class Outcome:
    """A terminal delivery state. [3.4]"""

    kind: Kind
    error: AmqpError | None = None
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[str, Any] | None = None


ACCEPTED = Outcome(Kind.ACCEPTED)
RELEASED = Outcome(Kind.RELEASED)
MODIFIED_FAILED = Outcome(Kind.MODIFIED, delivery_failed=True)
"""In doubt: it was written, and what became of it is not known."""


def rejected(name: str, description: str) -> Outcome:
    return Outcome(Kind.REJECTED, AmqpError(name, description))


def pending(delivery: Pointer) -> int:
    """Bytes that can be read now. None of an aborted delivery can, though the engine still counts them."""
    return 0 if lib.pn_delivery_aborted(delivery) else int(lib.pn_delivery_pending(delivery))


_TERMINAL = frozenset({Kind.ACCEPTED, Kind.REJECTED, Kind.RELEASED, Kind.MODIFIED})

is_partial = lib.pn_delivery_partial
is_aborted = lib.pn_delivery_aborted
is_settled = lib.pn_delivery_settled
remote_state = lib.pn_delivery_remote_state
settle = lib.pn_delivery_settle
"""Forget it. Never before an incoming one is complete or aborted: its later frames would shrink the window for good."""


def tag(delivery: Pointer) -> bytes:
    value = lib.pn_delivery_tag(delivery)
    return bytes(ffi.buffer(value.start, value.size))


def has_outcome(delivery: Pointer) -> bool:
    """The peer gave a terminal state (or settled with none, which says nothing)."""
    return remote_state(delivery) in _TERMINAL


def remote_outcome(delivery: Pointer) -> Outcome | None:
    """The terminal state the peer gave; None while there is none, or for a state that is not an outcome."""
    code = remote_state(delivery)
    if code not in _TERMINAL:
        return None
    kind = Kind(code)
    if kind is Kind.ACCEPTED or kind is Kind.RELEASED:
        return ACCEPTED if kind is Kind.ACCEPTED else RELEASED
    disposition = lib.pn_delivery_remote(delivery)
    if kind is Kind.REJECTED:
        return Outcome(kind, condition.read(lib.pn_disposition_condition(disposition)))
    return Outcome(
        kind,
        delivery_failed=bool(lib.pn_disposition_is_failed(disposition)),
        undeliverable_here=bool(lib.pn_disposition_is_undeliverable(disposition)),
        annotations=data.read_map(lib.pn_disposition_annotations(disposition)) or None,
    )


def set_outcome(delivery: Pointer, outcome: Outcome) -> None:
    """Tell the peer. A later ``settle`` tells it that we forgot."""
    if outcome.kind is Kind.REJECTED:
        condition.write(lib.pn_disposition_condition(lib.pn_delivery_local(delivery)), outcome.error)
    elif outcome.kind is Kind.MODIFIED:
        disposition = lib.pn_delivery_local(delivery)
        lib.pn_disposition_set_failed(disposition, outcome.delivery_failed)
        lib.pn_disposition_set_undeliverable(disposition, outcome.undeliverable_here)
        data.write_map(lib.pn_disposition_annotations(disposition), outcome.annotations)
    lib.pn_delivery_update(delivery, int(outcome.kind))


def copy_disposition(origin: Pointer, goal: Pointer) -> bool:
    """Give ``goal`` locally the state that ``origin`` has remotely, whatever it is. False when there is none."""
    code = remote_state(origin)
    if not code:
        return False
    if code == Kind.ACCEPTED or code == Kind.RELEASED:
        lib.pn_delivery_update(goal, code)
        return True
    remote, local = lib.pn_delivery_remote(origin), lib.pn_delivery_local(goal)
    if code == Kind.REJECTED:
        condition.copy(lib.pn_disposition_condition(local), lib.pn_disposition_condition(remote))
    elif code == Kind.MODIFIED:
        lib.pn_disposition_set_failed(local, lib.pn_disposition_is_failed(remote))
        lib.pn_disposition_set_undeliverable(local, lib.pn_disposition_is_undeliverable(remote))
        lib.pn_data_copy(lib.pn_disposition_annotations(local), lib.pn_disposition_annotations(remote))
    elif code == Kind.RECEIVED:
        lib.pn_disposition_set_section_number(local, lib.pn_disposition_get_section_number(remote))
        lib.pn_disposition_set_section_offset(local, lib.pn_disposition_get_section_offset(remote))
    else:
        lib.pn_data_copy(lib.pn_disposition_data(local), lib.pn_disposition_data(remote))
    lib.pn_delivery_update(goal, code)
    return True

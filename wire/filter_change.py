"""Changes of filter sets: each is a message on a control link, accepted once the change is in effect.

    {"serial": 1, "add": ["plant/8/#"], "remove": ["plant/7/#"]}

docs/reference/filter-sets.md describes the changes and their outcomes.
"""

from __future__ import annotations

from typing import Any

from addressing.filter_kinds import FilterError, FilterKind
from addressing.filter_set import MAX_FILTERS, FilterChange, FilterSet
from wire.delivery import Outcome, rejected
from wire.errors import LinkError
from wire.filter_set import INVALID, filter_set_of, read_filter_set, read_filters
from wire.message import MalformedMessage, decode
from wire.terminus import Terminus

CHANGE_BYTES = 64 << 10
"""Most bytes of a message with a change, whose some 2,000 filters take a node ten milliseconds."""
CREDIT = 100
"""Most changes that a client may send before the outcomes of earlier ones."""
KEYS = ("serial", "add", "remove")
_EXPECTED = "expected an amqp-value section with a map such as {serial: 1, add: [...], remove: [...]}"


def wanted_filter_set(wanted: Terminus, *, has_wildcards: bool) -> FilterSet | None:
    """Return the filter set of the source ``wanted``, whose address may have sets; None if the source has none.

    ``has_wildcards``: the address of the source has wildcards. Raises LinkError for a source whose set is not valid, or
    that supports no set.
    """
    found = filter_set_of(wanted)
    if not found:
        return None
    if wanted.outlives_link or "shared" in wanted.capabilities:
        what = "durable" if wanted.outlives_link else "shared"
        raise LinkError("amqp:not-implemented", f"a {what} subscription cannot have a filter set: no set is stored")
    if not has_wildcards:
        raise LinkError(
            INVALID, f"a filter set narrows a source with wildcards: {wanted.address!r} has none, and needs no filters"
        )
    kind, filters = read_filter_set(found)
    return FilterSet(kind, filters)


def read_change(filter_set: FilterSet, encoded: bytes) -> FilterChange | Outcome:
    """Return the next change of ``filter_set``, in the message ``encoded``, or the outcome of one with a mistake.

    The set itself is not changed here.
    """
    try:
        body = decode(encoded).body
    except MalformedMessage as error:
        return rejected("amqp:decode-error", str(error))
    if not isinstance(body, dict):
        return rejected("amqp:decode-error", f"cannot read the change: {_EXPECTED}")
    try:
        change = parse(body, filter_set.kind)
    except FilterError as error:
        return rejected(INVALID, str(error))
    if change.serial != filter_set.serial + 1:
        return rejected(
            INVALID, f"expected the serial {filter_set.serial + 1} for the next change, got {change.serial}"
        )
    added, removed = filter_set.difference(change)
    count = len(filter_set) + len(added) - len(removed)
    if count > MAX_FILTERS:
        what = f"the set would have {count} filters: expected at most {MAX_FILTERS}"
        return rejected("amqp:resource-limit-exceeded", what)
    return change


def parse(body: dict[Any, Any], kind: FilterKind) -> FilterChange:
    """Return the change in the map ``body`` for a set of filters of ``kind``; raise FilterError if it has a mistake."""
    for key in body:
        if not isinstance(key, str) or key not in KEYS:
            raise FilterError(f"unknown key {key!r} of a change: expected {', '.join(KEYS)}")
    serial = body.get("serial")
    if not isinstance(serial, int) or isinstance(serial, bool):
        raise FilterError(f"expected a whole number as the serial of a change, got {serial!r}")
    added = tuple(_filters(body, "add", kind))
    removed = tuple(_filters(body, "remove", kind))
    both = set(added) & set(removed)
    if both:
        raise FilterError(f"filter {min(both)!r} is both in add and in remove: expected each filter in one of them")
    return FilterChange(int(serial), added, removed)


def _filters(body: dict[Any, Any], key: str, kind: FilterKind) -> list[str]:
    try:
        return read_filters(kind, body.get(key))
    except FilterError as error:
        raise FilterError(f"{key}: {error}") from None

"""Filter sets in attaches: the set in the filter map of a source, and the capability of a control link.

A filter set is a described list [kind, filters]. docs/reference/filter-sets.md describes sets and their changes.

Spec: AMQP 1.0 [3.5.8] filter set.
"""

from __future__ import annotations

from typing import Any

from addressing.filter_kinds import FilterError, FilterKind
from wire.errors import LinkError
from wire.terminus import Terminus

FILTER_SET = "amqpmesh:filter-set:list"
"""Descriptor by which a filter set is known in a source: its name in the filter map is the client's choice."""
CONTROL = "amqpmesh:filter-set"
"""Target capability of a control link, over which a client changes the set of the receiver of the same link name."""
INVALID = "amqp:invalid-field"


def filter_set_of(wanted: Terminus) -> dict[str, Any]:
    """Return {name: described list} of the filter sets in the source ``wanted``; {} if it has none."""
    return {name: value for name, value in wanted.filter.items() if getattr(value, "descriptor", None) == FILTER_SET}


def read_filter_set(found: dict[str, Any]) -> tuple[FilterKind, list[str]]:
    """Return (kind, filters) of the one set in ``found``, which is not empty; filters may be there twice.

    Raises LinkError for more than one set, for a list of another form, and for a filter that is not valid.
    """
    if len(found) > 1:
        raise LinkError(INVALID, f"expected one filter set in a source, got {len(found)}: {', '.join(sorted(found))}")
    ((name, described),) = found.items()
    items = described.value
    if not isinstance(items, list) or not 1 <= len(items) <= 2:
        raise LinkError(INVALID, f"filter set {name!r}: expected a described list of a kind and filters")
    try:
        kind = FilterKind(items[0])
    except ValueError:
        kinds = " or ".join(FilterKind)
        raise LinkError(INVALID, f"filter set {name!r}: expected the kind {kinds}, got {items[0]!r}") from None
    try:
        return kind, read_filters(kind, items[1] if len(items) == 2 else None)
    except FilterError as error:
        raise LinkError(INVALID, f"filter set {name!r}: {error}") from None


def read_filters(kind: FilterKind, value: Any) -> list[str]:
    """Return the filters in ``value``, a list or array of strings, or None for none.

    Raises FilterError for any other value, and for a filter that is not valid for ``kind``.
    """
    if value is None:
        return []
    filters = getattr(value, "elements", value)
    if not isinstance(filters, list | tuple) or not all(isinstance(each, str) for each in filters):
        raise FilterError("expected the filters as a list or array of strings")
    return [kind.check(str(each)) for each in filters]

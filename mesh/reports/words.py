"""Formats figures of a report as text, such as `18 ms`, `12.3 MB` or `1,203`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NONE = "-"
NOT_ACCEPTED = ("rejected", "released", "modified", "aborted", "sender_lost")
"""Outcomes of messages that did not arrive, upon which a producer has to act."""
SIZES = ("bytes", "kB", "MB", "GB", "TB", "PB")


def not_accepted(row: Mapping[str, Any]) -> int:
    """Return the number of messages that were not accepted, from a row with a column for each outcome."""
    return sum(row[name] or 0 for name in NOT_ACCEPTED)


def duration(value_us: float | None) -> str:
    """Format a duration in us with three significant digits, in a unit from us to days."""
    if value_us is None:
        return NONE
    for limit_us, unit_us, unit in _UNITS:
        if abs(value_us) < limit_us:
            return f"{value_us / unit_us:.3g} {unit}"
    return f"{value_us / 86_400e6:.3g} d"


_UNITS = (
    (999.5, 1, "us"),
    (999.5e3, 1e3, "ms"),
    (119.5e6, 1e6, "s"),
    (119.5 * 60e6, 60e6, "min"),
    (48 * 3600e6, 3600e6, "h"),
)


def size(value_bytes: float | None) -> str:
    """Format a number of bytes with three significant digits, in decimal units such as kB and MB."""
    if value_bytes is None:
        return NONE
    for unit in SIZES[:-1]:
        if abs(value_bytes) < 999.5:
            return f"{value_bytes:.3g} {unit}"
        value_bytes /= 1000
    return f"{value_bytes:.3g} {SIZES[-1]}"


def count(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def counted(value: int, one: str, many: str) -> str:
    return f"{value:,} {one} was" if value == 1 else f"{value:,} {many} were"


def rate(value_per_s: float | None) -> str:
    if value_per_s is None:
        return NONE
    return f"{value_per_s:,.0f}" if value_per_s >= 100 else f"{value_per_s:.3g}"


def share(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.3g} %"

"""Formats sizes for the rows of a benchmark."""

from __future__ import annotations

_NAMES = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KB"))


def size_name(size: int) -> str:
    """Format a size such as `100 B`, `10 KB` or `1 GiB`; a KB has 1,024 bytes."""
    for unit, name in _NAMES:
        if size >= unit and size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} B"

"""Formats sizes for the rows of a benchmark."""

from __future__ import annotations

_NAMES = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KB"))


def size_name(size: int) -> str:
    """Format a number of bytes as `100 B`, `10 KB` (of 1,024 bytes), `1 MiB` or `1 GiB`: in the greatest unit of which
    the size is a whole multiple.
    """
    for unit, name in _NAMES:
        if size >= unit and size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} B"

"""Decides whether the disk has room for new messages, or the broker must stop producers until there is more room.

The store measures the room (``Store.look``), and the broker's node decides, without I/O.
Units: bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

WANTED_BYTES = 1 << 30
WANTED_PART = 20
WANTED_AT_MOST_PART = 4
"""Default of the room to keep free: 1 GiB or 1/20 of the file system, whichever is more, but 1/4 at most."""
MARGIN_PART = 8
MARGIN_BYTES = 256 << 20
"""Producers go on once a margin beyond the wanted room is free: 1/8 of the wanted room, at most MARGIN_BYTES."""
LEAST_PART = 4
"""This part of the wanted room must be free on the file system itself, however empty the store's own files are."""


@dataclass(frozen=True, slots=True)
class Space:
    """A measure of the room on the file system that has the store's ``directory``."""

    directory: str
    total_bytes: int
    free_bytes: int
    """Free bytes that this process may use."""
    reusable_bytes: int = 0
    """Bytes of deleted messages within the store's tables, used for new messages before the tables grow."""
    reserve_bytes: int = 0
    """The size of the store's reserve, a file that keeps room for a full disk; 0 if given up, or never made."""


def default_wanted(total_bytes: int) -> int:
    """Return the bytes to keep free on a file system of this size if the topology file does not say."""
    return min(max(WANTED_BYTES, total_bytes // WANTED_PART), total_bytes // WANTED_AT_MOST_PART)


class Watermark:
    """Tells whether a disk's room is low: once less than ``wanted_bytes`` is free, until a margin more is free.

    Room of deleted messages within the tables counts as free, beyond a quarter of ``wanted_bytes`` that must be free on
    the file system. Otherwise a broker that filled its disk, and was drained, would stay low for ever: SQLite gives no
    room back.
    """

    def __init__(self, wanted_bytes: int | None = None) -> None:
        """Want ``wanted_bytes`` free; None: a number by the size of the file system, 0: room is never low."""
        self._wanted_bytes = wanted_bytes
        self.is_low = False

    def wanted_of(self, space: Space) -> int:
        return default_wanted(space.total_bytes) if self._wanted_bytes is None else self._wanted_bytes

    def on_space(self, space: Space) -> bool:
        """Take a new measure of the room, and note in ``is_low`` whether it is low; return whether that changed."""
        wanted = self.wanted_of(space)
        margin = min(wanted // MARGIN_PART, MARGIN_BYTES) if self.is_low else 0
        was_low, self.is_low = self.is_low, not _has_room(space, wanted + margin)
        return self.is_low != was_low


def _has_room(space: Space, wanted_bytes: int) -> bool:
    if space.free_bytes < wanted_bytes // LEAST_PART:
        return False
    return space.free_bytes + space.reusable_bytes >= wanted_bytes

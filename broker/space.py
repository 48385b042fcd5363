"""Is there room on the disk for what producers send, or only for what is there already?

Pure. The store says what room there is (``Store.look``), the node decides by it.
Units: bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

WANTED_BYTES = 1 << 30
WANTED_PART = 20
WANTED_AT_MOST_PART = 4
"""By default 1 GiB or 1/20 of the file system stays free, whichever is more; of a small one at most 1/4."""
MARGIN_PART = 8
MARGIN_BYTES = 256 << 20
"""So much more than is wanted has to be free before producers go on: 1/8 of it, or this."""
LEAST_PART = 4
"""Of what is wanted so much has to be free of the file system itself, however empty the store's own files are."""


@dataclass(frozen=True, slots=True)
class Space:
    """Of the file system that ``directory`` lies on."""

    directory: str
    total_bytes: int
    free_bytes: int
    """What this process may still take."""
    reusable_bytes: int = 0
    """Within the store's tables, of deleted messages: new ones take it before the tables grow."""
    reserve_bytes: int = 0
    """What the store keeps for itself; 0 when it was given up, or never made."""


def default_wanted(total_bytes: int) -> int:
    """What is to stay free of a file system when the topology does not say."""
    return min(max(WANTED_BYTES, total_bytes // WANTED_PART), total_bytes // WANTED_AT_MOST_PART)


class Watermark:
    """Low is when less room is left than ``wanted_bytes``; fine again when there is a margin more.

    What deleted messages left in the tables counts as room. Without that a broker that has filled its disk, and was
    drained, would stay low for ever: SQLite gives nothing back.
    """

    def __init__(self, wanted_bytes: int | None = None) -> None:
        """None: by the size of the file system. 0: never low."""
        self._wanted_bytes = wanted_bytes
        self.is_low = False

    def wanted_of(self, space: Space) -> int:
        return default_wanted(space.total_bytes) if self._wanted_bytes is None else self._wanted_bytes

    def on_space(self, space: Space) -> bool:
        """Whether ``is_low`` changed."""
        wanted = self.wanted_of(space)
        margin = min(wanted // MARGIN_PART, MARGIN_BYTES) if self.is_low else 0
        was_low, self.is_low = self.is_low, not _has_room(space, wanted + margin)
        return self.is_low != was_low


def _has_room(space: Space, wanted_bytes: int) -> bool:
    if space.free_bytes < wanted_bytes // LEAST_PART:
        return False
    return space.free_bytes + space.reusable_bytes >= wanted_bytes

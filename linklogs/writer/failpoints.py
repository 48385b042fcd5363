"""Where would a crash of the writer hurt most? Each such place has a name, and a test can have it end there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    SPOOLED = "spooled"
    """What came out of the ring is in the spool; the ring does not say that it was taken."""
    TAKEN = "taken"
    SPOOL_BEGUN = "spool-begun"
    """The one after it; the one before is no file yet."""
    FILE_WRITTEN = "file-written"
    """Under a name that readers leave out."""
    FILE_NAMED = "file-named"
    """For readers; its spool is still there."""
    SPOOL_DELETED = "spool-deleted"
    """Of a node that is gone perhaps the last: its ring is still there."""


Passing = Callable[[Failpoint], None]


def pass_by(_: Failpoint) -> None:
    """Nothing happens there."""

"""Named failpoints: places where a crash of the writer would hurt most, for tests that end the writer there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class WriterFailpoint(StrEnum):
    SPOOLED = "spooled"
    """Slots of the ring are in the spool; the ring's count of taken slots does not include them yet."""
    TAKEN = "taken"
    """Slots of the ring are in the spool, and in the ring's count of taken slots."""
    SPOOL_BEGUN = "spool-begun"
    """A new spool was begun; the records of the previous spool are not in a file of the link log yet."""
    FILE_WRITTEN = "file-written"
    """A file of the link log is written, under a draft's name, which readers ignore."""
    FILE_NAMED = "file-named"
    """A file of the link log has its final name; the spool with the same records is not deleted yet."""
    SPOOL_DELETED = "spool-deleted"
    """The spool of a finished file is deleted; the ring of a node that has ended may still exist."""


Passing = Callable[[WriterFailpoint], None]


def pass_by(_: WriterFailpoint) -> None:
    """Do nothing: outside of tests, the writer calls this function at each failpoint."""

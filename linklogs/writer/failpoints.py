"""Named failpoints: places where a crash of the writer would hurt most, for tests that end the writer there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class WriterFailpoint(StrEnum):
    SPOOLED = "spooled"
    """Slots of the ring are in the spool; the ring does not say yet that they were taken."""
    TAKEN = "taken"
    SPOOL_BEGUN = "spool-begun"
    """The next spool is begun; the spool before is no file yet."""
    FILE_WRITTEN = "file-written"
    """The file is written, under a name that readers leave out."""
    FILE_NAMED = "file-named"
    """The file has its final name; its spool is still there."""
    SPOOL_DELETED = "spool-deleted"
    """The spool is deleted; the ring of a node that is gone may still be there."""


Passing = Callable[[WriterFailpoint], None]


def pass_by(_: WriterFailpoint) -> None:
    """Do nothing."""

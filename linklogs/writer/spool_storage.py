"""Stores a spool, records taken from a ring, as a file of the link log.

However often the writer dies meanwhile, there is one file in the end: the file's name follows from the spool.
"""

from __future__ import annotations

from pathlib import Path

from linklogs.private_files import make_directories, replacing
from linklogs.writer import spool
from linklogs.writer.encoders import Encoder
from linklogs.writer.failpoints import Passing, WriterFailpoint


def store(path: Path, encoder: Encoder, passing: Passing) -> Path | None:
    """Store the spool as a file; return the file's path, or None if the spool is empty or was stored before.

    The spool is not deleted. Raises SpoolDamaged for a spool that can never become a file, and OSError.
    """
    found = encoder.encode(path)
    if found is None:
        return None
    make_directories(found.target.parent)
    with replacing(found.target, path.with_suffix(spool.DRAFT)) as file:
        file.write(found.data)
        passing(WriterFailpoint.FILE_WRITTEN)
    passing(WriterFailpoint.FILE_NAMED)
    return found.target

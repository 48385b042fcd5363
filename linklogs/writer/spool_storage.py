"""Stores a spool, records taken from a ring, as a file of the link log.

However often the writer dies meanwhile, there is one file in the end: the file's name follows from the spool.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow

from linklogs.file_names import directory_of, file_name
from linklogs.live_files import replaced_in
from linklogs.private_files import make_directories, replacing
from linklogs.writer import spool
from linklogs.writer.encoding import encode
from linklogs.writer.failpoints import Passing, WriterFailpoint
from linklogs.writer.hourly import sensible_us
from linklogs.writer.redaction import Redactor
from linklogs.writer.slots import at_us


def store(path: Path, out: Path, redactor: Redactor, passing: Passing) -> Path | None:
    """Store the spool as a file; return the file's path, or None if the spool is empty or was stored before.

    The spool is not deleted. Raises SpoolDamaged for a spool that can never become a file, and OSError.
    """
    content = spool.read(path)
    if content.chunks and any(len(chunk.slots) for chunk in content.chunks):
        try:
            return _store(path, content, out, redactor, passing)
        finally:
            # Give memory back that Arrow would keep for the next file, which may be a minute away.
            pyarrow.default_memory_pool().release_unused()
    return None


def _store(path: Path, content: spool.Content, out: Path, redactor: Redactor, passing: Passing) -> Path | None:
    owner = content.head.owner
    began_us = _began_us(content)
    directory = directory_of(out, owner.node, began_us)
    target = directory / file_name(owner.run, content.head.first)
    if target.exists() or target.name in replaced_in(directory):
        return None
    redact = (lambda row: row) if content.head.is_redacted else redactor.row
    try:
        data = encode(content, redact, began_us)
    except (pyarrow.ArrowException, ValueError) as error:
        raise spool.SpoolDamaged(
            f"{path}: expected a spool with records that fit the columns of link logs, got: {error}"
        ) from error
    make_directories(directory)
    with replacing(target, path.with_suffix(spool.DRAFT)) as file:
        file.write(data)
        passing(WriterFailpoint.FILE_WRITTEN)
    passing(WriterFailpoint.FILE_NAMED)
    return target


def _began_us(content: spool.Content) -> int:
    chunk = next(chunk for chunk in content.chunks if len(chunk.slots))
    return sensible_us(int(at_us(chunk.slots[:1], chunk.clock_us)[0]), content.head.owner.run)

"""The file of the link log that a spool becomes, in memory: where the file belongs, and its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow

from linklogs.file_names import directory_of, file_name
from linklogs.live_files import replaced_in
from linklogs.writer import spool
from linklogs.writer.encoding import encode
from linklogs.writer.hourly import sensible_us
from linklogs.writer.redaction import Redactor
from linklogs.writer.slots import at_us


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file of the link log that is not written yet: its path, and its content as Parquet."""

    target: Path
    data: memoryview | pyarrow.Buffer


def encoded_file(path: Path, out: Path, redactor: Redactor) -> EncodedFile | None:
    """Return the file that the spool at ``path`` becomes; None if the spool is empty or was stored before.

    Nothing is written. Raises SpoolDamaged for a spool that can never become a file, and OSError.
    """
    content = spool.read(path)
    began_us = _began_us(content)
    if began_us is None:
        return None
    owner = content.head.owner
    directory = directory_of(out, owner.node, began_us)
    target = directory / file_name(owner.run, content.head.first)
    if target.exists() or target.name in replaced_in(directory):
        return None
    redact = (lambda row: row) if content.head.is_redacted else redactor.row
    try:
        return EncodedFile(target, encode(content, redact, began_us))
    except (pyarrow.ArrowException, ValueError) as error:
        raise spool.SpoolDamaged(
            f"{path}: expected a spool with records that fit the columns of link logs, got: {error}"
        ) from error


def _began_us(content: spool.Content) -> int | None:
    for chunk in content.chunks:
        if len(chunk.slots):
            return sensible_us(int(at_us(chunk.slots[:1], chunk.clock_us)[0]), content.head.owner.run)
    return None

"""Deletes files of link logs that are too old, or have too many bytes together."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from linklogs.file_names import HOUR_US, files_in, hours, size_of


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """The number of deleted files of link logs, and their size together."""

    files: int
    size_bytes: int


def expire(out: Path, now_us: int, keep_s: float | None, keep_bytes: int | None) -> ExpiredFiles:
    """Delete files of ``out`` whose hour ended ``keep_s`` ago or earlier; then the oldest, until all have at most
    ``keep_bytes``.

    None in place of a limit: this limit deletes nothing. Drafts, files being written, are neither counted nor deleted.
    Raises OSError.
    """
    kept = [(began_us, path, size_of(path) or 0) for began_us, hour in hours(out) for path in files_in(hour)]
    old_us = None if keep_s is None else now_us - int(keep_s * 1_000_000)
    total_bytes = sum(size for _, _, size in kept)
    gone = []
    for began_us, path, size in kept:
        is_old = old_us is not None and began_us + HOUR_US <= old_us
        if is_old or (keep_bytes is not None and total_bytes > keep_bytes):
            path.unlink(missing_ok=True)
            total_bytes -= size
            gone.append((path, size))
    _remove_empty({path.parent for path, _ in gone})
    return ExpiredFiles(len(gone), sum(size for _, size in gone))


def _remove_empty(directories: set[Path]) -> None:
    # The directory of an hour stays if it is not empty: a new file may appear in the directory at this moment.
    for hour in directories:
        with suppress(OSError):
            hour.rmdir()
            hour.parent.rmdir()

"""Compaction of link logs: merges the many small files of a past hour into one or a few, while other processes read.

The merged file names all replaced files in its metadata; once the merged file has its final name, readers ignore the
replaced files (``live_files``). Replaced files are deleted after that, and only while no process reads link logs in the
directory: readers are in the context ``reading``. A crash in between leaves replaced files, which the next run deletes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from linklogs.file_names import HOUR_US, UNREAD, files_in, hours, size_of
from linklogs.live_files import live_files_in, replaced_in
from linklogs.merge import DRAFT, Source, UnreadableFile, merge, source_of

SETTLED_US: Final = 300_000_000
"""The wait between the end of an hour and the merge of its files: until then the writer may still add files."""

MOST_BYTES: Final = 32 << 20
"""The most bytes of files that are merged into one; a single larger file stays as it is.

Readers hold whole files in memory, several at a time, and read each file on one core.
"""

_LOCK: Final = ".compacting"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CompactionFailpoint(StrEnum):
    """The places in a merge of link log files where tests end the process."""

    MERGED = "merged"
    """The merged file has its final name; the replaced files are not deleted yet."""


Passing = Callable[[CompactionFailpoint], None]


@dataclass(frozen=True, slots=True)
class CompactReport:
    """The result of one compaction: counts and sizes of all files of past hours, before and after.

    ``hours``: the number of directories, of a node and hour each, that got a merged file. ``findings``: a sentence,
    with the reason, for each file or hour that could not be merged and was left as it is. ``put_off``: the number of
    replaced files that stay until the next run, since a process reads link logs now.
    """

    directory: Path
    hours: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    findings: tuple[str, ...]
    put_off: int = 0


def compact(directory: Path, now: datetime, passing: Passing = lambda _: None) -> CompactReport:
    """Merge the files of each node and hour that ended at least five minutes before ``now``, which has a time zone.

    Raises FileNotFoundError if there is no ``directory``, BlockingIOError if another process merges there, and OSError.
    """
    now_us = (now - _EPOCH) // timedelta(microseconds=1)
    with _alone(directory):
        closed = [hour for began_us, hour in hours(directory) if began_us + HOUR_US + SETTLED_US <= now_us]
        before = _sizes(closed)
        findings: list[str] = []
        merged = put_off = 0
        for hour in closed:
            merged += _compact_hour(hour, findings, passing)
            put_off += _delete_replaced(directory, hour)
        after = _sizes(closed)
    sizes = len(before), len(after), sum(before), sum(after)
    return CompactReport(directory, merged, *sizes, tuple(findings), put_off)


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Keep merges from deleting replaced files in ``directory`` while the context lasts, by a shared lock.

    On a file system without locks, or if the directory cannot be opened, the context does nothing, and raises nothing.
    """
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _compact_hour(hour: Path, findings: list[str], passing: Passing) -> bool:
    """Merge the files of one node and hour, after deleting old drafts; return whether a merged file was written."""
    for draft in hour.glob(f"{UNREAD}*{DRAFT}"):
        draft.unlink()
    is_merged = False
    for sources in _groups(_sources(live_files_in(hour), findings)):
        if len(sources) > 1 and _merge(hour, sources, findings):
            is_merged = True
            passing(CompactionFailpoint.MERGED)
    return is_merged


def _groups(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """Yield groups of successive sources, each of at most MOST_BYTES together, or of one larger file."""
    group: list[Source] = []
    group_bytes = 0
    for source in sources:
        own_bytes = size_of(source.path) or 0
        if group and group_bytes + own_bytes > MOST_BYTES:
            yield group
            group, group_bytes = [], 0
        group.append(source)
        group_bytes += own_bytes
    if group:
        yield group


def _sources(paths: list[Path], findings: list[str]) -> list[Source]:
    """Return the files that can be merged; for each other file a sentence is added to ``findings``."""
    found = []
    for path in paths:
        try:
            found.append(source_of(path))
        except UnreadableFile as error:
            findings.append(f"{error}; the file was not changed")
    return found


def _merge(hour: Path, sources: list[Source], findings: list[str]) -> bool:
    try:
        merge(hour, sources)
    except UnreadableFile as error:
        findings.append(f"{error}; the files of its hour were not changed")
        return False
    except FileNotFoundError:
        # It is no error if the whole directory of the hour is gone: the writer may have deleted old files meanwhile.
        if hour.exists():
            raise
        return False
    return True


def _delete_replaced(directory: Path, hour: Path) -> int:
    """Delete the replaced files of an hour; return how many stay because a process reads link logs now."""
    # The metadata of a merged file may name any file as replaced: only files of the same node and hour are deleted.
    replaced = replaced_in(hour)
    there = [path for path in files_in(hour) if path.name in replaced]
    if not there:
        return 0
    with _nobody_reading(directory) as is_so:
        if not is_so:
            return len(there)
        for path in there:
            path.unlink(missing_ok=True)
    return 0


@contextmanager
def _nobody_reading(directory: Path) -> Iterator[bool]:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _has_locked(handle)
    finally:
        os.close(handle)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    handle = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        if not _has_locked(handle):
            raise BlockingIOError(f"{directory}: another process merges files here: expected one at a time")
        yield
    finally:
        os.close(handle)


def _has_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sizes(directories: list[Path]) -> list[int]:
    return [size for hour in directories for path in files_in(hour) if (size := size_of(path)) is not None]

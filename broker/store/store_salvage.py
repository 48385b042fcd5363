"""Salvages a damaged store into a new directory; the old directory stays as it is.

If the log belongs to the database, every whole frame of its commits is used, even behind a damaged frame, since each
frame is enough to verify the next. A page whose last frame is damaged gets zeros in the copy, so that no earlier
version passes for the last: opening the copy finds such pages, and reports the losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile

from broker.store.anchor import Anchor, AnchorClaim, AnchorFile
from broker.store.batch import StoreError
from broker.store.check_report import CheckReport
from broker.store.copying import finish, made
from broker.store.first_page import COPY
from broker.store.judgement import DATABASE, LOG, Judgement, StoreDamagedError, judge
from broker.store.large import sync_directory
from broker.store.lock import DirectoryLock
from broker.store.log_reader import LogFrame, SqliteLog
from broker.store.page_header import PAGE_BYTES
from broker.store.read_store import LARGE
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check


@dataclass(slots=True)
class Salvage:
    """The result of the salvage of a damaged store: a report on the new store, and the losses."""

    report: CheckReport
    """The check of the new store."""
    lost: list[str] = field(default_factory=list)
    """Sentences about lost or changed content."""


def salvage(directory: Path, copy: Path) -> Salvage:
    """Make a store in ``copy``, a new directory, from the readable parts of the store in ``directory``.

    Raises StoreError if ``copy`` exists, a broker uses the store, or no message can be found.
    """
    if copy.exists():
        raise StoreError(f"{copy} already exists: expected the name of a new directory")
    if not directory.is_dir():
        raise StoreError(f"there is no store in {directory}: expected the data directory of a broker")
    lock = DirectoryLock(directory)
    try:
        judgement = judge(directory)
        if judgement.is_new:
            raise StoreError(f"the store in {directory} was never used: it has no messages")
        return _salvage(directory, copy, judgement)
    finally:
        lock.release()


def _salvage(directory: Path, copy: Path, judgement: Judgement) -> Salvage:
    partial = copy.with_name(f"{copy.name}.partial")
    with made(partial):
        lost = [*judgement.findings, *_put_pages(directory, partial, judgement)]
        for name in _copied_files(directory):
            copyfile(directory / name, partial / name)
        _claim_nothing(partial)
        lost += _opened(partial)
        lost += _left_behind(directory, partial)
        finish(partial)
        report = check(partial)
        partial.rename(copy)
        sync_directory(copy.parent)
    report.directory = copy
    return Salvage(report, list(dict.fromkeys(lost)))


def _copied_files(directory: Path) -> list[str]:
    large = directory / LARGE
    names = [f"{LARGE}/{path.name}" for path in sorted(large.iterdir())] if large.is_dir() else []
    return names + [COPY] * (directory / COPY).is_file()


def _put_pages(directory: Path, partial: Path, judgement: Judgement) -> list[str]:
    """Copy the database, and write the changes in its log into the copy; return sentences about changes left out."""
    database = partial / DATABASE
    if (directory / DATABASE).exists():
        copyfile(directory / DATABASE, database)
    else:
        database.touch(mode=0o600)
    if judgement.log is None:
        return []
    if not judgement.is_log_used:
        return [f"nothing of {LOG} is used, since {LOG} and {DATABASE} are from different times"]
    return _replay(judgement.log, database)


def _replay(log: SqliteLog, database: Path) -> list[str]:
    end = _credible_end(log.frames)
    last: dict[int, int | None] = {}
    spoiled = 0
    most = max((frame.file_pages for frame in log.frames[:end]), default=0)
    for at, frame in enumerate(log.frames[:end]):
        if frame.is_whole:
            last[frame.page] = at
        else:
            spoiled += 1
            if 0 < frame.page <= most:
                last[frame.page] = None
    with database.open("r+b") as file:
        for page, number in last.items():
            file.seek((page - 1) * PAGE_BYTES)
            file.write(bytes(PAGE_BYTES) if number is None else log.page_at(number))
        if end:
            file.truncate(log.frames[end - 1].file_pages * PAGE_BYTES)
    if not spoiled:
        return []
    away = sum(at is None for at in last.values())
    return [
        f"{spoiled:,} of {end:,} frames of {LOG} do not match their checksum; for all but {away:,} of "
        "their pages a later frame has newer content"
    ]


def _credible_end(frames: Sequence[LogFrame]) -> int:
    """Return the number of frames up to the last commit frame that is whole, or followed by a whole one; 0 for none."""
    for at in range(len(frames) - 1, -1, -1):
        is_credible = frames[at].is_whole or (at + 1 < len(frames) and frames[at + 1].is_whole)
        if frames[at].is_live and frames[at].file_pages and is_credible:
            return at + 1
    return 0


def _claim_nothing(partial: Path) -> None:
    anchor = AnchorFile(partial)
    try:
        anchor.put(Anchor(AnchorClaim.DATABASE))
    finally:
        anchor.close()


def _opened(partial: Path) -> list[str]:
    """Open and close the copy as a broker does, which puts damaged tables aside; return sentences about losses."""
    try:
        store = SqliteStore(partial)
    except StoreDamagedError as damage:
        raise StoreError(f"nothing can be salvaged: {damage.findings[0]}: restore a backup") from None
    try:
        inventory = store.load()
        for _ in inventory.segments:
            pass
        return inventory.damages
    finally:
        store.close()


def _left_behind(directory: Path, partial: Path) -> list[str]:
    large = directory / LARGE
    known = {path.name for path in (partial / LARGE).iterdir()}
    count = sum(path.name not in known for path in large.iterdir()) if large.is_dir() else 0
    if not count:
        return []
    return [f"{count:,} large bodies remain in {large} only: no row says which queue their messages are in"]

"""Reads SQLite's write-ahead log from the disk, and finds the frames that SQLite would use, and those it would lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from broker.store.log_frames import FRAME_HEAD_BYTES, HEADER_BYTES, read_frames, read_header
from broker.store.page_header import PAGE_BYTES

_SUM = slice(16, 24)


class LogFrame(NamedTuple):
    """A frame of SQLite's log, which has a new version of one page of the database."""

    page: int
    file_pages: int
    """In the last frame of a transaction the page count of the database; 0 in all other frames."""
    is_live: bool
    """Whether the frame is of this log, not left over from an earlier log in the same file."""
    is_whole: bool
    """Whether the frame is of this log, and matches its checksum."""


@dataclass(frozen=True)
class SqliteLog:
    """A write-ahead log of SQLite as found on the disk.

    ``salts``, which each frame of this log has, are from the header or, if that is damaged, the expected salts.
    """

    content: bytes
    is_header_whole: bool
    salts: bytes
    frames: Sequence[LogFrame]

    @cached_property
    def whole_count(self) -> int:
        """The number of frames before the first frame that is damaged or of an earlier log; SQLite uses no more."""
        if not self.is_header_whole:
            return 0
        return next((at for at, frame in enumerate(self.frames) if not frame.is_whole), len(self.frames))

    @cached_property
    def committed_count(self) -> int:
        """The number of frames that SQLite uses: those of complete transactions in the first ``whole_count`` frames."""
        ends = (at + 1 for at in range(self.whole_count - 1, -1, -1) if self.frames[at].file_pages)
        return next(ends, 0)

    @cached_property
    def transaction_count(self) -> int:
        """The number of transactions that SQLite uses: the complete ones within the first ``whole_count`` frames."""
        return sum(bool(frame.file_pages) for frame in self.frames[: self.committed_count])

    @cached_property
    def lost_transactions(self) -> int:
        """The number of commits behind the first damaged frame that were certainly synced; SQLite would ignore them.

        With synchronous=FULL no transaction begins before the last is on the disk. So a commit followed by a whole
        frame of this log was whole once, and so were all before; a commit at the end may never have been written
        completely.
        """
        first = self.whole_count if self.is_header_whole else -1
        frames = self.frames
        return sum(
            bool(frames[at].is_live and frames[at].file_pages and frames[at + 1].is_whole)
            for at in range(first + 1, len(frames) - 1)
        )

    def checksum_at(self, count: int) -> bytes:
        """Return the checksum in the last of the first ``count`` frames, which covers all of these frames."""
        place = _frame_at(count - 1)
        return self.content[place + _SUM.start : place + _SUM.stop]

    def page(self, page: int, count: int | None = None) -> bytes | None:
        """Return a page as of the first ``count`` frames, or of those that SQLite uses; None if these lack the page."""
        for at in range((self.committed_count if count is None else count) - 1, -1, -1):
            if self.frames[at].page == page:
                return self.page_at(at)
        return None

    def page_at(self, number: int) -> bytes:
        """Return the content of the page in frame ``number`` of the log, counted from 0."""
        place = _frame_at(number) + FRAME_HEAD_BYTES
        return self.content[place : place + PAGE_BYTES]


def read_log(path: Path, salts: bytes | None = None) -> SqliteLog | None:
    """Return the log in the file ``path``; None if missing or empty.

    ``salts`` are expected if the header is damaged; None: those of the first frame.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if not content:
        return None
    header = read_header(content)
    is_whole = header is not None and header[1] == PAGE_BYTES
    if header is not None and is_whole:
        salts = header[0]
    elif salts is None or not any(salts):
        salts = content[HEADER_BYTES + 8 : HEADER_BYTES + 16].ljust(8, b"\0")
    return SqliteLog(content, is_whole, salts, [LogFrame(*each) for each in read_frames(content, salts, PAGE_BYTES)])


def _frame_at(number: int) -> int:
    return HEADER_BYTES + number * (FRAME_HEAD_BYTES + PAGE_BYTES)

"""Log events of the writer: one JSON object a line on stderr, a frozen dataclass for each event."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class WriterEvent:
    """``level`` is a property of the kind, not of the occurrence."""

    level: ClassVar[str] = "info"

    @classmethod
    def event_name(cls) -> str:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


@dataclass(frozen=True, slots=True)
class WriterStarted(WriterEvent):
    """The writer takes records from ``rings`` and writes files to ``out``."""

    rings: str
    out: str


@dataclass(frozen=True, slots=True)
class WriterStopped(WriterEvent):
    """The writer was asked to stop; all records of nodes so far are in files."""


@dataclass(frozen=True, slots=True)
class SignalIgnored(WriterEvent):
    """The writer goes on as before: no signal makes the writer read or open anything again."""

    level: ClassVar[str] = "warning"
    signal: str


@dataclass(frozen=True, slots=True)
class RingFound(WriterEvent):
    """The writer found the ring of a node: the node has started to record, or the writer has started."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingEnded(WriterEvent):
    """The node of a ring is gone, and all records of the ring are in files."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingPutAside(WriterEvent):
    """A ring is damaged: the writer renamed the ring, and takes no more records from it."""

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class SpoolPutAside(WriterEvent):
    """Records waiting to become a file are damaged: the writer renamed their spool."""

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class RecordsRefused(WriterEvent):
    """The writer dropped records that are invalid, or of a kind unknown to this version."""

    level: ClassVar[str] = "warning"
    node: str
    run: int
    records: int


@dataclass(frozen=True, slots=True)
class FileWritten(WriterEvent):
    """A file has its final name: readers see the file."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WritingFailed(WriterEvent):
    """Writing failed for a node. Logged once; the writer tries again until `writing_recovered`."""

    level: ClassVar[str] = "error"
    node: str
    run: int
    error: str


@dataclass(frozen=True, slots=True)
class WritingRecovered(WriterEvent):
    """Writing that had failed for this node has succeeded."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class LookingFailed(WriterEvent):
    """The writer could not look at rings, or at old files. Logged once for each error."""

    level: ClassVar[str] = "error"
    error: str


@dataclass(frozen=True, slots=True)
class FilesExpired(WriterEvent):
    """Files were deleted because they were older than ``keep_s``, or beyond ``keep_bytes``."""

    files: int
    size_bytes: int


Tell = Callable[[WriterEvent], None]


def tell(event: WriterEvent) -> None:
    """Log an event; a stderr that is gone or full is no reason to fail."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"ts": now, "level": event.level, "event": event.event_name(), **dataclasses.asdict(event)}
    try:
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return

"""What the writer says: one JSON object a line on stderr, a frozen dataclass for each event."""

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
    """It takes records from ``rings`` and writes files to ``out``."""

    rings: str
    out: str


@dataclass(frozen=True, slots=True)
class WriterStopped(WriterEvent):
    """It was asked to; what nodes had recorded is in files."""


@dataclass(frozen=True, slots=True)
class SignalIgnored(WriterEvent):
    """The writer goes on as before: nothing is read or opened again at a signal."""

    level: ClassVar[str] = "warning"
    signal: str


@dataclass(frozen=True, slots=True)
class RingFound(WriterEvent):
    """A node has started to record, or the writer has."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingEnded(WriterEvent):
    """Its node is gone, and all that was in it is in files."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingPutAside(WriterEvent):
    """It is damaged, has another name now, and nothing more is taken from it."""

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class SpoolPutAside(WriterEvent):
    """What waited to become a file is damaged, and has another name now."""

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class RecordsRefused(WriterEvent):
    """They made no sense, or are of a kind that this version does not know."""

    level: ClassVar[str] = "warning"
    node: str
    run: int
    records: int


@dataclass(frozen=True, slots=True)
class FileWritten(WriterEvent):
    """It has its name, and readers see it."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WritingFailed(WriterEvent):
    """Said once; tried again until `writing_recovered`."""

    level: ClassVar[str] = "error"
    node: str
    run: int
    error: str


@dataclass(frozen=True, slots=True)
class WritingRecovered(WriterEvent):
    """What had failed for this node is done."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class LookingFailed(WriterEvent):
    """At rings, or at old files. Said once for each error."""

    level: ClassVar[str] = "error"
    error: str


@dataclass(frozen=True, slots=True)
class FilesExpired(WriterEvent):
    """They were older than ``keep_s``, or more than ``keep_bytes``."""

    files: int
    size_bytes: int


Tell = Callable[[WriterEvent], None]


def tell(event: WriterEvent) -> None:
    """A stderr that is gone or full is not a reason to fail."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"ts": now, "level": event.level, "event": event.event_name(), **dataclasses.asdict(event)}
    try:
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return

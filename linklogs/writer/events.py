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
    """The base of all log events of the writer. ``level`` is the same for all events of a class."""

    level: ClassVar[str] = "info"

    @classmethod
    def event_name(cls) -> str:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


@dataclass(frozen=True, slots=True)
class WriterStarted(WriterEvent):
    """The writer has started: from now on it takes records from the rings in directory ``rings``, and writes files to
    directory ``out``.
    """

    rings: str
    out: str


@dataclass(frozen=True, slots=True)
class WriterStopped(WriterEvent):
    """The writer has stopped as told.

    All records that the writer could take are in files, except those of a node with a `writing_failed` that no
    `writing_recovered` followed: these wait for the next writer.
    """


@dataclass(frozen=True, slots=True)
class SignalIgnored(WriterEvent):
    """The writer got ``signal``, which makes other programs read settings or open files again; the writer goes on."""

    level: ClassVar[str] = "warning"
    signal: str


@dataclass(frozen=True, slots=True)
class RingFound(WriterEvent):
    """The writer found the ring of a node: the node has started to record, or the writer has started."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingEnded(WriterEvent):
    """The node of a ring has ended, and all its records are in files: the writer deleted the ring."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class RingPutAside(WriterEvent):
    """A ring is damaged, or is a second ring of the same run; `reason` says which.

    The writer renames the ring's file to end with `.damaged`, and takes no more records from the ring: records not
    taken yet are in no file of the link log.
    """

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class SpoolPutAside(WriterEvent):
    """A spool, a file of records waiting to become a file of the link log, is damaged or missing.

    The writer renamed a damaged spool to end with `.damaged`; its records are in no file of the link log.
    """

    level: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class RecordsRefused(WriterEvent):
    """The writer dropped records that are invalid, or of a kind unknown to this version: no file has them."""

    level: ClassVar[str] = "warning"
    node: str
    run: int
    records: int


@dataclass(frozen=True, slots=True)
class FileWritten(WriterEvent):
    """The writer has finished a file of a link log: the file has its final name, so readers see the file."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WritingFailed(WriterEvent):
    """Moving the records of a node into files failed, such as on a full disk.

    Logged once; the writer tries again until `writing_recovered`.
    """

    level: ClassVar[str] = "error"
    node: str
    run: int
    error: str


@dataclass(frozen=True, slots=True)
class WritingRecovered(WriterEvent):
    """Moving the records of a node into files succeeded again, after `writing_failed`."""

    node: str
    run: int


@dataclass(frozen=True, slots=True)
class LookingFailed(WriterEvent):
    """The writer could not list or open rings, or delete old files.

    Logged once for each text of an error, as long as the writer runs. The writer tries again: rings after a second, old
    files after a minute.
    """

    level: ClassVar[str] = "error"
    error: str


@dataclass(frozen=True, slots=True)
class FilesExpired(WriterEvent):
    """The writer deleted old files of link logs.

    Their hours ended longer than ``keep_s`` ago, or all files together had more than ``keep_bytes`` (settings).
    """

    files: int
    size_bytes: int


Tell = Callable[[WriterEvent], None]


def tell(event: WriterEvent) -> None:
    """Log an event to stderr; the event is lost, without an error, if stderr is closed or its disk is full."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"ts": now, "level": event.level, "event": event.event_name(), **dataclasses.asdict(event)}
    try:
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return

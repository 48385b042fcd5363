"""Finds the cause of a node's or supervisor's death in the last 64 KiB of its log, as one sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesh.deploy.log_rotation import files_of

TAIL_BYTES = 64 * 1024
GRAVE = ("error", "critical")
SURVIVED = frozenset({"connection_bug", "node_bug", "loop_trouble", "message_unreadable", "duplicate_router_id"})
"""Events of level error or critical after which a node goes on: none of these is taken for the cause of a death."""
# Fields that say where a log line comes from and nothing about the event itself; a sentence leaves these fields out.
FRAME = frozenset({"ts", "level", "node", "event"})


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in a log, which later rotations do not move: the file's number in the file system, and the offset."""

    inode: int
    offset: int


def size_bytes(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def end_of(log: Path) -> LogPosition:
    """Return the place where the next line of ``log`` will be."""
    try:
        status = log.stat()
    except FileNotFoundError:
        return LogPosition(0, 0)
    return LogPosition(status.st_ino, status.st_size)


def first_cause(log: Path, since: LogPosition | None = None) -> str | None:
    """Return the last event of level error or critical behind the place ``since`` of ``log`` as a sentence.

    Events after which a node goes on are passed over. Without a fatal event, return the ``last_words``.
    """
    for line in reversed(_tail(log, since)):
        event = _parse(line)
        if event is not None and event.get("level") in GRAVE and event.get("event") not in SURVIVED:
            return to_sentence(event)
    return last_words(log, since)


def last_words(log: Path, since: LogPosition | None = None) -> str | None:
    """Return the log's last line that is not empty if it is no JSON event but, say, the message of Python or C at a
    crash; else None.
    """
    for line in reversed(_tail(log, since)):
        if _parse(line) is not None:
            return None
        if line.strip():
            return line.strip()
    return None


def to_sentence(event: dict[str, Any]) -> str:
    for key in ("reason", "message", "error"):
        if isinstance(text := event.get(key), str) and text:
            return text
    details = " ".join(f"{key}={value}" for key, value in event.items() if key not in FRAME)
    return f"{event.get('event', 'error')} {details}".strip()


def text_since(log: Path, since: LogPosition | None) -> str:
    return "\n".join(_tail(log, since))


def _tail(log: Path, since: LogPosition | None) -> list[str]:
    """Return the lines behind ``since``, the last 64 KiB of them; a log that was rotated meanwhile is several files.

    Without ``since``, only the file in use is read.
    """
    files, offset = files_of(log), 0
    inodes = [file.stat().st_ino for file in files]
    if since is None:
        files = files[-1:]
    elif since.inode in inodes:
        files, offset = files[inodes.index(since.inode) :], since.offset
    data = b""
    for file in reversed(files):
        least = offset if file is files[0] else 0
        with file.open("rb") as opened:
            opened.seek(max(least, file.stat().st_size - (TAIL_BYTES - len(data))))
            data = opened.read() + data
        if len(data) >= TAIL_BYTES:
            break
    return data.decode(errors="replace").splitlines()


def _parse(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None

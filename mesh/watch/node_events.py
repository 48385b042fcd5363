"""The events in the logs of the nodes of this host, newest first, as pages. A log is read from its end, in part only.

A page begins where a binary search by time finds the cursor, or the end of the wanted time. At most SCANNED_BYTES are
read for a page; a page that is cut off so has a cursor to go on with. A line that is no event, such as a crash's last
words, is an event `output` with the time of the event behind it.
"""

from __future__ import annotations

import asyncio
import base64
import heapq
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from mesh.watch.audit import whole_number
from mesh.watch.backward_lines import lines_before, offset_of
from mesh.watch.query import QueryError

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
SCANNED_BYTES: Final = 4 * 1024 * 1024
"""About the most bytes of logs that are read for a page."""
LEVELS: Final = ("debug", "info", "warning", "error")
PARAMETERS: Final = ("node", "level", "event", "since", "until", "after", "limit")
OUTPUT: Final = "output"
OUTPUT_CHARS: Final = 2000
_SUFFIX: Final = ".jsonl"
_KEYS: Final = frozenset({"ts", "level", "node", "event"})
_FAR_S: Final = 1e11

_Place = tuple[float, str, int, int]
"""Time, name of the log, the file's inode, and the offset of the line: after a time, later lines come first."""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """``level``: the lowest. ``since``, ``until``: seconds of UTC. ``after``: the last line of the page before."""

    node: str | None
    least_rank: int
    event: str | None
    since: float | None
    until: float | None
    after: _Place | None
    limit: int


@dataclass(frozen=True, slots=True)
class _LogLine:
    at: float
    log: str
    inode: int
    offset: int
    bytes: int
    event: Mapping[str, Any]


class NodeEvents:
    """The logs in ``folder``: `NAME.jsonl`, and older files of the log, `NAME.jsonl.1` and so on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "events")

    async def page(self, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return `items` and `next`, the cursor to go on with, or None. Raises QueryError."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._page, parameters)

    # In the thread
    def _page(self, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
        names = self._names()
        query = parse_event_query(parameters, names)
        items: list[dict[str, Any]] = []
        with ExitStack() as opened:
            chosen = names if query.node is None else (query.node,)
            lines = heapq.merge(*(self._lines(name, query, opened) for name in chosen), key=_newest_first)
            left = SCANNED_BYTES
            for line in lines:
                if query.since is not None and line.at < query.since:
                    break
                left -= line.bytes + 1
                if _is_wanted(line.event, query):
                    items.append(_row(line))
                if len(items) == query.limit or left <= 0:
                    return {"items": items, "next": _cursor(line)}
        return {"items": items, "next": None}

    def _names(self) -> tuple[str, ...]:
        found = {path.name.partition(_SUFFIX)[0] for path in self._folder.glob(f"*{_SUFFIX}*")}
        return tuple(sorted(found))

    def _lines(self, name: str, query: EventQuery, opened: ExitStack) -> Iterator[_LogLine]:
        """Yield the lines of a log behind the cursor, the newest first."""
        until = query.until if query.until is not None else _FAR_S
        after = query.after
        if after is not None:
            until = min(until, after[0])
        files = self._open(name, opened)
        newest = 0
        if after is not None and name == after[1]:
            # Files that are newer than that of the cursor's line were written since, or were passed.
            newest = next((number for number, (_, inode) in enumerate(files) if inode == after[2]), 0)
        at = until
        for file, inode in files[newest:]:
            end = offset_of(file, lambda line: None if (time_s := _time_of(line)) is None else time_s <= until)
            for offset, content in lines_before(file, end):
                event = _event(content)
                at = min(_seconds(event.get("ts")) or at, until)
                line = _LogLine(at, name, inode, offset, len(content), event)
                if after is None or _is_behind(line, after):
                    yield line

    def _open(self, name: str, opened: ExitStack) -> list[tuple[BinaryIO, int]]:
        """Return the files of a log with their inodes, the newest first."""
        found: list[tuple[BinaryIO, int]] = []
        number = 0
        while True:
            path = self._folder / (name + _SUFFIX + (f".{number}" if number else ""))
            try:
                file = opened.enter_context(path.open("rb"))
            except FileNotFoundError:
                if number:
                    return found
            else:
                inode = os.fstat(file.fileno()).st_ino
                # A log that is rotated meanwhile is found again by its next name.
                if all(inode != each for _, each in found):
                    found.append((file, inode))
            number += 1


def parse_event_query(parameters: Sequence[tuple[str, str]], names: tuple[str, ...]) -> EventQuery:
    """Return the query of a query string. ``names``: the logs there are. Raises QueryError."""
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in PARAMETERS:
            raise QueryError(name[:80], f"unknown parameter {name[:80]!r}", PARAMETERS)
        if name in given:
            raise QueryError(name, f"the parameter {name} is given twice, expected once")
        given[name] = value
    node, level = given.get("node"), given.get("level", LEVELS[0])
    if node is not None and node not in names:
        raise QueryError("node", f"there is no log of {node[:80]!r} on this host", names)
    if level not in LEVELS:
        raise QueryError("level", f"unknown level {level[:80]!r}", LEVELS)
    after = given.get("after")
    limit = whole_number("limit", given.get("limit"), 1, MAX_LIMIT) or DEFAULT_LIMIT
    return EventQuery(
        node, LEVELS.index(level), given.get("event"), _moment("since", given.get("since")),
        _moment("until", given.get("until")), None if after is None else _place(after), limit,
    )  # fmt: skip


def _moment(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    found = _seconds(text)
    if found is None:
        try:
            found = float(text)
        except ValueError:
            found = -1.0
    if not 0 <= found <= _FAR_S:
        raise QueryError(name, f"expected a time as 2026-01-31T12:00:00Z or as seconds since 1970, got {text[:80]!r}")
    return found


def _cursor(line: _LogLine) -> str:
    content = json.dumps([line.at, line.log, line.inode, line.offset])
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _place(text: str) -> _Place:
    try:
        at, log, inode, offset = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, RecursionError):
        at = None
    is_number = isinstance(at, (int, float)) and 0 <= at <= _FAR_S
    if not is_number or not isinstance(log, str) or type(inode) is not int or type(offset) is not int:
        raise QueryError("after", f"{text[:80]!r} is not a cursor, expected the `next` of a page")
    return float(at), log, inode, offset


def _newest_first(line: _LogLine) -> tuple[float, str]:
    return -line.at, line.log


def _is_behind(line: _LogLine, after: _Place) -> bool:
    """Tell whether a line comes behind the cursor: older, or as old and in a later log, or further up in its file."""
    at, log, inode, offset = after
    if line.at != at or line.log != log:
        return (-line.at, line.log) > (-at, log)
    return line.inode != inode or line.offset < offset


def _is_wanted(event: Mapping[str, Any], query: EventQuery) -> bool:
    if query.event is not None and event.get("event") != query.event:
        return False
    level = event.get("level")
    return not isinstance(level, str) or level not in LEVELS or LEVELS.index(level) >= query.least_rank


def _row(line: _LogLine) -> dict[str, Any]:
    event = line.event
    return {
        "at": line.at,
        "node": line.log,
        "level": event.get("level"),
        "event": event.get("event"),
        "fields": {name: value for name, value in event.items() if name not in _KEYS},
    }


def _event(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("event"), str):
        return found
    return {"level": "error", "event": OUTPUT, "text": line.decode(errors="replace")[:OUTPUT_CHARS]}


def _time_of(line: bytes) -> float | None:
    return _seconds(_event(line).get("ts"))


def _seconds(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None

"""The audit: a line for each change that somebody asked for, also for one that was refused.

    {"number": 17, "at": 1790000000.1, "who": "alice", "login": "session", "from": "127.0.0.1:53816",
     "operation": "purge", "target": "b1/7", "what": {"address": "orders"}, "arguments": {"up_to": 8301},
     "dry_run": false, "key": "5c1e0d", "before": {"messages": 12}, "after": {"messages": 0}, "outcome": "done",
     "status": 200, "done": {"messages": 12}}

Observer and commands write to the same files, one at a time, by a lock. Only the owner of the mesh can read the files.
Lines are only added. A file of FILE_BYTES becomes `audit.jsonl.1`, and the oldest of FILES goes. What changed nothing,
such as dry runs and refused requests, is in files of its own, `refused.jsonl` and so on: so nobody can push a change
out of the audit by requests that are refused. Bodies and properties of messages are in no line.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import heapq
import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mesh.watch.backward_lines import lines_before
from mesh.watch.query import QueryError
from mesh.watch.whole_lines import write_whole

FILE_BYTES: Final = 8 * 1024 * 1024
FILES: Final = 8
"""The most files of each name that are kept, with the one that is written."""
CHANGES: Final = "audit.jsonl"
REFUSALS: Final = "refused.jsonl"
HARMLESS: Final = frozenset({"refused", "counted", "repeated"})
"""Outcomes that changed nothing."""
MAX_SCANNED: Final = 20_000
"""The most lines that one request for a page looks at."""
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_LINE_CHARS: Final = 32_768
LOCK: Final = "audit.lock"
LOCKED_S: Final = 5.0
"""The longest time in seconds that a process waits for its turn to write a line of the audit."""
_LOOK_S: Final = 0.01
FILTERS: Final = ("who", "operation", "outcome", "target")
PARAMETERS: Final = (*FILTERS, "after", "limit")


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """``equals``: values by name of a member. ``before``: only lines with a smaller number."""

    equals: Mapping[str, str]
    before: int | None
    limit: int


class AuditLog:
    """The audit in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "audit")
        self._number = 0
        """The number of the last line, while the files are as ``_seen`` says."""
        self._seen: tuple[tuple[int, int], ...] | None = None

    async def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line, on the disk once this returns. Raises OSError."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self.append_now, entry)

    async def page(self, query: AuditQuery) -> dict[str, Any]:
        """Return `items`, the newest first, and `next`, the number to go on behind, or None.

        A page with fewer items than `limit` has a `next`, too, if MAX_SCANNED lines were looked at.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._page, query)

    def append_now(self, entry: Mapping[str, Any]) -> None:
        """As `append`, in this thread. Raises OSError, also if another process writes for LOCKED_S."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self._folder / LOCK):
            if self._seen != self._states():
                self._number = next((row["number"] for row in self._rows()), 0)
            try:
                self._append(entry)
            finally:
                self._seen = self._states()

    # In the thread
    def _states(self) -> tuple[tuple[int, int], ...]:
        """Return inode and size of each file that is written; another writer has changed one of them."""
        found: list[tuple[int, int]] = []
        for name in (CHANGES, REFUSALS):
            try:
                stat = (self._folder / name).stat()
            except FileNotFoundError:
                found.append((0, 0))
            else:
                found.append((stat.st_ino, stat.st_size))
        return tuple(found)

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = _line({"number": self._number + 1, **entry})
        path = self._folder / (REFUSALS if entry.get("outcome") in HARMLESS else CHANGES)
        if path.exists() and path.stat().st_size + len(line) > FILE_BYTES:
            _rotate(path)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # A line that was cut off, as by a full disk, ends here.
                line = b"\n" + line
            write_whole(descriptor, line, path)
        finally:
            os.close(descriptor)
        self._number += 1

    def _page(self, query: AuditQuery) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for scanned, row in enumerate(self._rows(query.before), 1):
            if all(row.get(name) == value for name, value in query.equals.items()):
                items.append(row)
            if len(items) == query.limit or scanned == MAX_SCANNED:
                return {"items": items, "next": row["number"] if row["number"] > 1 else None}
        return {"items": items, "next": None}

    def _rows(self, before: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows with numbers smaller than ``before``, the newest first."""
        each = (_rows_of(self._folder / name, before) for name in (CHANGES, REFUSALS))
        return heapq.merge(*each, key=lambda row: -row["number"])


def _rows_of(path: Path, before: int | None) -> Iterator[dict[str, Any]]:
    for number in range(FILES):
        with suppress(FileNotFoundError), _older(path, number).open("rb") as file:
            first = _row(file.readline(MAX_LINE_CHARS + 1))
            if before is not None and first is not None and first["number"] >= before:
                continue
            for _, line in lines_before(file, file.seek(0, os.SEEK_END)):
                row = _row(line)
                if row is not None and (before is None or row["number"] < before):
                    yield row


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCKED_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    reason = f"another process has held the lock for {LOCKED_S:g} s"
                    raise OSError(errno.EAGAIN, reason, str(path)) from None
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _rotate(path: Path) -> None:
    for number in reversed(range(FILES - 1)):
        with suppress(FileNotFoundError):
            _older(path, number).replace(_older(path, number + 1))


def _older(path: Path, number: int) -> Path:
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def parse_audit_query(parameters: list[tuple[str, str]]) -> AuditQuery:
    """Return the query of a query string. Raises QueryError."""
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in PARAMETERS:
            raise QueryError(name[:80], f"unknown parameter {name[:80]!r}", PARAMETERS)
        if name in given:
            raise QueryError(name, f"the parameter {name} is given twice, expected once")
        given[name] = value
    before = whole_number("after", given.get("after"), 1, 2**53)
    limit = whole_number("limit", given.get("limit"), 1, MAX_LIMIT)
    return AuditQuery({name: given[name] for name in FILTERS if name in given}, before, limit or DEFAULT_LIMIT)


def whole_number(name: str, text: str | None, least: int, most: int) -> int | None:
    """Return the number that parameter ``name`` has, or None without a value. Raises QueryError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 20 or not least <= int(text) <= most:
        raise QueryError(name, f"expected a whole number from {least} to {most} as {name}, got {text[:80]!r}")
    return int(text)


def _line(entry: dict[str, Any]) -> bytes:
    text = json.dumps(entry)
    if len(text) > MAX_LINE_CHARS:
        text = json.dumps({**entry, "what": {}, "arguments": {}, "before": {}, "after": {}, "is_cut": True})
    return text.encode() + b"\n"


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_row = isinstance(row, dict) and isinstance(row.get("number"), int)
    return row if is_row else None

"""Finds the link logs of a span of time in a local directory, and reports what else is there, except drafts.

Only names are looked at, and only on this machine: Spark finds files elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from linklogs.moments import TimeSpan, parse_hour_us

NODE = "node="
HOUR = "hour="
SUFFIX = ".parquet"
UNSEEN = "._"
"""Names with these first characters are ignored: such files are drafts, or no link logs."""
EXPECTED = f"{NODE}NAME/{HOUR}YYYY-MM-DDTHH/*{SUFFIX}"


class NoLogs(Exception):
    """No link logs can be read for a report; the message is a sentence for people, with the reason."""


class LogFile(NamedTuple):
    """A file of a link log, found by name alone; whether the content is a link log is checked when the file is read."""

    node: str
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """The link logs found for a report: ``files`` in order of node, hour and name.

    ``notices``: a sentence for each file or directory that is left out, and for each node that has files, but none of
    the requested time: the hours in names of directories are by the node's own clock, which may be wrong.
    """

    files: tuple[LogFile, ...]
    notices: tuple[str, ...]


@dataclass(slots=True)
class _Walk:
    """The walk through the directories of nodes and hours, which collects files and notices."""

    span: TimeSpan
    files: list[LogFile] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    hours: list[str] = field(default_factory=list)
    """Hours of the node being walked that are outside the requested time."""
    silent: list[str] = field(default_factory=list)
    """A sentence for each node that has files, but none of the requested time."""

    def root(self, directory: str) -> None:
        for entry in self._entries(directory):
            if self._is_directory(entry, NODE):
                self._node(entry.path, entry.name.removeprefix(NODE))

    def _node(self, directory: str, node: str) -> None:
        known, self.hours = len(self.files), []
        for entry in self._entries(directory):
            if self._is_directory(entry, HOUR) and self._is_wanted(entry):
                self._hour(entry.path, node)
        if self.hours and len(self.files) == known:
            self.silent.append(
                f"{directory} has files of {self.hours[0]} to {self.hours[-1]} and none of the requested "
                "time: its node did not run then, or its clock was wrong"
            )

    def _hour(self, directory: str, node: str) -> None:
        for entry in self._entries(directory):
            if entry.is_symlink() and not os.path.exists(entry.path):
                self._leave_out(f"{entry.path} is a link to {os.readlink(entry.path)}, which does not exist")
                continue
            if not entry.name.endswith(SUFFIX) or not entry.is_file():
                self._leave_out(f"{entry.path} is not part of a link log: expected a file that ends in {SUFFIX}")
                continue
            # A file that is gone is skipped: the writer, another process, may delete old files at any time.
            with suppress(FileNotFoundError):
                self.files.append(LogFile(node, entry.path, entry.stat().st_size))

    def _entries(self, directory: str) -> Iterator[os.DirEntry[str]]:
        """Yield a directory's entries; an unreadable directory, or a name that is not UTF-8, becomes a notice.

        Names that begin with a point or an underscore are left out without a notice. A directory that was deleted
        meanwhile has no entries.
        """
        try:
            entries = list(_visible(directory))
        except FileNotFoundError:
            return
        except OSError as error:
            self._leave_out(f"{directory} cannot be read: {error.strerror}")
            return
        for entry in entries:
            if _is_text(entry.name):
                yield entry
            else:
                self._leave_out(f"{entry.path} has a name that is not valid text: expected UTF-8")

    def _is_directory(self, entry: os.DirEntry[str], prefix: str) -> bool:
        if entry.name.startswith(prefix) and entry.is_dir():
            return True
        self._leave_out(not_a_directory(entry.path, prefix))
        return False

    def _is_wanted(self, entry: os.DirEntry[str]) -> bool:
        hour = entry.name.removeprefix(HOUR)
        if not is_hour(hour):
            self._leave_out(no_hour(entry.path))
            return False
        if self.span.may_hold(parse_hour_us(hour)):
            return True
        self.hours.append(entry.name.removeprefix(HOUR))
        return False

    def _leave_out(self, notice: str) -> None:
        # Octets of a name that are not UTF-8 become escapes, so that the notice can be printed.
        self.notices.append(notice.encode("utf-8", "backslashreplace").decode())


def is_hour(text: str) -> bool:
    try:
        parse_hour_us(text)
    except ValueError:
        return False
    return True


def not_a_directory(path: str, prefix: str) -> str:
    return f"{path} is not part of a link log: expected a directory {prefix}..."


def no_hour(path: str) -> str:
    return f"{path} is not part of a link log: expected an hour such as {HOUR}2026-11-24T00"


def find(root: str, span: TimeSpan) -> FoundLogs:
    """Find files below ``root`` that may hold records of ``span``, by names alone.

    Raise NoLogs if there are none, or if ``root`` is no directory.
    """
    if not os.path.isdir(root):
        raise NoLogs(f"{root} is not a directory: expected one with link logs, {EXPECTED}")
    walk = _Walk(span)
    walk.root(root)
    if not walk.files:
        raise NoLogs(_nothing(root, walk.notices, span))
    return FoundLogs(tuple(walk.files), (*walk.notices, *walk.silent))


def _visible(directory: str) -> Iterator[os.DirEntry[str]]:
    """Yield a directory's entries in order of names, without names that begin with a point or an underscore."""
    with os.scandir(directory) as entries:
        yield from sorted((each for each in entries if each.name[0] not in UNSEEN), key=lambda each: each.name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _nothing(root: str, notices: Sequence[str], span: TimeSpan) -> str:
    meant = _root_above(root) or _root_below(root)
    if meant is not None:
        return f"no link logs in {root}: did you mean {meant}?"
    if notices:
        return f"no link log in {root} can be read; the first of {len(notices):,} reasons: {notices[0]}"
    of_time = "" if span.is_all else " of that time"
    if os.path.isdir(os.path.join(root, "_spool")):
        return f"no link logs{of_time} in {root} yet: records become a file within a minute, or when the node stops"
    return f"no link logs{of_time} in {root}: expected {EXPECTED}"


def _root_above(root: str) -> str | None:
    """Return the directory that has the nodes, given a directory of a node or of an hour; None for any other."""
    path = os.path.abspath(root)
    if os.path.basename(path).startswith(HOUR):
        path = os.path.dirname(path)
    return os.path.dirname(path) if os.path.basename(path).startswith(NODE) else None


def _root_below(root: str) -> str | None:
    """Return the only subdirectory with nodes; None if there are none or several, or if ``root`` has nodes itself."""
    if _has_nodes(root):
        return None
    directories = [each.path for each in _visible(root) if each.is_dir() and not each.name.startswith(NODE)]
    roots = [path for path in directories if os.access(path, os.R_OK | os.X_OK) and _has_nodes(path)]
    return roots[0] if len(roots) == 1 else None


def _has_nodes(directory: str) -> bool:
    return any(each.name.startswith(NODE) and each.is_dir() for each in _visible(directory))

"""Where in a directory are link logs of a time, and what else is there?

Only of paths of this machine: what lies elsewhere is found by Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from linklogs.moments import Span, parse_hour_us

NODE = "node="
HOUR = "hour="
SUFFIX = ".parquet"


class NoLogs(Exception):
    """There is nothing to report; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Found:
    """``directories`` are those of hours. ``notices``: a sentence for each thing that is left out, and for each node
    that has files, but none of the time: hours are those of its own clock.

    ``is_whole``: nothing else lies below the root.
    """

    root: str
    directories: tuple[str, ...]
    notices: tuple[str, ...]
    is_whole: bool

    def paths(self) -> list[str]:
        """What to read, as few as can be: the more there are, the longer Spark takes to list them."""
        return [self.root] if self.is_whole else list(self.directories)


@dataclass(slots=True)
class _Walk:
    """What lies where logs should lie."""

    span: Span
    directories: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_whole: bool = True
    hours: list[str] = field(default_factory=list)
    """Of a node, those that are not of the time."""
    silent: list[str] = field(default_factory=list)
    """A sentence for each node that has files, but none of the time."""

    def root(self, directory: str) -> None:
        for entry in _visible(directory):
            if self._is_directory(entry, NODE):
                self._node(entry.path)

    def _node(self, directory: str) -> None:
        known, self.hours = len(self.directories), []
        for entry in _visible(directory):
            if self._is_directory(entry, HOUR) and self._is_wanted(entry):
                self._hour(entry.path)
        if self.hours and len(self.directories) == known:
            self.silent.append(
                f"{directory} has files of {self.hours[0]} to {self.hours[-1]} and none of that time: its node was not "
                "there, or its clock is off"
            )

    def _hour(self, directory: str) -> None:
        has_logs = False
        for entry in _visible(directory):
            if entry.name.endswith(SUFFIX) and entry.is_file():
                has_logs = True
            else:
                self._leave_out(f"{entry.path} is not of a link log: expected a file that ends in {SUFFIX}")
        if has_logs:
            self.directories.append(directory)

    def _is_directory(self, entry: os.DirEntry[str], prefix: str) -> bool:
        if entry.name.startswith(prefix) and entry.is_dir():
            return True
        self._leave_out(f"{entry.path} is not of a link log: expected a directory {prefix}...")
        return False

    def _is_wanted(self, entry: os.DirEntry[str]) -> bool:
        try:
            hour_us = parse_hour_us(entry.name.removeprefix(HOUR))
        except ValueError:
            self._leave_out(f"{entry.path} is not of a link log: expected an hour such as {HOUR}2026-11-24T00")
            return False
        if self.span.may_hold(hour_us):
            return True
        self.is_whole = False
        self.hours.append(entry.name.removeprefix(HOUR))
        return False

    def _leave_out(self, notice: str) -> None:
        self.is_whole = False
        self.notices.append(notice)


def find(root: str, span: Span) -> Found:
    """By names alone: what is in the files is for who reads them to say. Raise NoLogs where there is none."""
    if not os.path.isdir(root):
        raise NoLogs(f"{root} is no directory: expected one with link logs, node=NAME/hour=YYYY-MM-DDTHH/*{SUFFIX}")
    walk = _Walk(span)
    walk.root(root)
    found = Found(root, tuple(walk.directories), tuple(walk.notices), walk.is_whole)
    if not found.directories:
        raise NoLogs(_nothing(found, span))
    return replace(found, notices=(*found.notices, *walk.silent))


def _visible(directory: str) -> Iterator[os.DirEntry[str]]:
    """In order; without what is still being written, and what readers of such directories leave alone."""
    with os.scandir(directory) as entries:
        yield from sorted((each for each in entries if each.name[0] not in "._"), key=lambda each: each.name)


def _nothing(found: Found, span: Span) -> str:
    below = _root_below(found.root)
    if below is not None:
        return f"no link logs in {found.root}: did you mean {below}?"
    if found.notices:
        return f"nothing in {found.root} can be read; the first reason of {len(found.notices):,}: {found.notices[0]}"
    of_time = "" if span.is_all else " of that time"
    return f"no link logs{of_time} in {found.root}: expected node=NAME/hour=YYYY-MM-DDTHH/*{SUFFIX}"


def _root_below(root: str) -> str | None:
    """The one directory in it that has directories of nodes; None without, where there are several, or it has them."""
    if _has_nodes(root):
        return None
    directories = [each.path for each in _visible(root) if each.is_dir() and not each.name.startswith(NODE)]
    roots = [path for path in directories if os.access(path, os.R_OK | os.X_OK) and _has_nodes(path)]
    return roots[0] if len(roots) == 1 else None


def _has_nodes(directory: str) -> bool:
    return any(each.name.startswith(NODE) and each.is_dir() for each in _visible(directory))

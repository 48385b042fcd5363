"""Which files of a directory are link logs of a time, and what is wrong with the others?

Only of paths of this machine: what lies elsewhere is found, and judged, by Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from glob import escape, glob

from linklogs.footers import BadFile, Footer, read_footer
from linklogs.live_files import MERGED
from linklogs.moments import Span, parse_hour_us

NODE = "node="
HOUR = "hour="
SUFFIX = ".parquet"
READERS = 8
"""Threads that read footers: they mostly wait for the disk."""


class NoLogs(Exception):
    """There is nothing to report; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Found:
    """``notices``: a sentence for each file that is left out. ``is_whole``: everything below the root can be read."""

    root: str
    footers: tuple[Footer, ...]
    notices: tuple[str, ...]
    is_whole: bool

    @property
    def records(self) -> int:
        return sum(footer.records for footer in self.footers)

    @property
    def size_bytes(self) -> int:
        return sum(footer.size_bytes for footer in self.footers)

    def paths(self) -> list[str]:
        return [self.root] if self.is_whole else self.files()

    def files(self) -> list[str]:
        return [footer.path for footer in self.footers]

    def is_unchanged(self) -> bool:
        """Nobody merged files meanwhile: who lists the root now reads each record of what was found once."""
        known = set(self.files())
        merged = glob(f"{escape(self.root)}/{NODE}*/{HOUR}*/*{MERGED}*{SUFFIX}")
        return known.issuperset(merged)


@dataclass(slots=True)
class _Walk:
    """What lies where logs should lie."""

    span: Span
    paths: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_whole: bool = True

    def root(self, directory: str) -> None:
        for entry in _visible(directory):
            if self._is_directory(entry, NODE):
                self._node(entry.path)

    def _node(self, directory: str) -> None:
        for entry in _visible(directory):
            if self._is_directory(entry, HOUR) and self._is_wanted(entry):
                self._hour(entry.path)

    def _hour(self, directory: str) -> None:
        for entry in _visible(directory):
            if entry.name.endswith(SUFFIX) and entry.is_file():
                self.paths.append(entry.path)
            else:
                self._leave_out(f"{entry.path} is not of a link log: expected a file that ends in {SUFFIX}")

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
        return False

    def _leave_out(self, notice: str) -> None:
        self.is_whole = False
        self.notices.append(notice)


def find(root: str, span: Span) -> Found:
    """Raise NoLogs where no file can be read."""
    if not os.path.isdir(root):
        raise NoLogs(f"{root} is no directory: expected one with link logs, node=NAME/hour=YYYY-MM-DDTHH/*{SUFFIX}")
    walk = _Walk(span)
    walk.root(root)
    read = list(_read(walk.paths))
    footers, replaced = _live([each for each in read if isinstance(each, Footer)])
    bad = [each.notice for each in read if isinstance(each, BadFile)]
    found = Found(root, footers, (*walk.notices, *bad), walk.is_whole and not bad and not replaced)
    if not footers:
        raise NoLogs(_nothing(found, span))
    return found


def _visible(directory: str) -> Iterator[os.DirEntry[str]]:
    """In order; without what is still being written, and what readers of such directories leave alone."""
    with os.scandir(directory) as entries:
        yield from sorted((each for each in entries if each.name[0] not in "._"), key=lambda each: each.name)


def _read(paths: Iterable[str]) -> Iterator[Footer | BadFile]:
    with ThreadPoolExecutor(READERS) as pool:
        yield from pool.map(read_footer, paths)


def _live(footers: list[Footer]) -> tuple[tuple[Footer, ...], int]:
    """Without files that another has the records of: whoever merged them had no time to take them away."""
    replaced = {os.path.join(os.path.dirname(each.path), name) for each in footers for name in each.replaces}
    live = tuple(each for each in footers if each.path not in replaced)
    return live, len(footers) - len(live)


def _nothing(found: Found, span: Span) -> str:
    if found.notices:
        return f"nothing in {found.root} can be read; the first reason of {len(found.notices):,}: {found.notices[0]}"
    of_time = "" if span.is_all else " of that time"
    return f"no link logs{of_time} in {found.root}: expected node=NAME/hour=YYYY-MM-DDTHH/*{SUFFIX}"

"""Files of link logs as a worker of Spark gets them, their paths or their octets: what can be read of each, in pieces.

Reading them so costs a third of what Spark's own reader does, as no record passes through a row of it; and a file that
cannot be read is a sentence there too, wherever it lies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow
from pyarrow import parquet

from addressing.link_log import COLUMNS, RUN_KEY, Kind
from linklogs.footers import NO_LINK_LOG, TYPES, first_line, replaces, times, wrong
from linklogs.moments import ALWAYS, Span

DAMAGED: Final = "is damaged"
"""Of a file, behind its name."""
FILE_COLUMNS: Final = ("node", "path", "size_bytes", "content")
AT_ONCE: Final = 1 << 20
"""Records of a piece at most; with all that is made of them, some 200 MB."""
AT_ONCE_BYTES: Final = 1 << 20
"""A file that is smaller is read as a whole: to read each column on its own takes longer."""
LIMIT: Final = 1 << 63
"""Of a number in a column."""
MOST_DIGITS: Final = 20
WORDS: Final = ("kind", "event", "outcome", "part")
"""Columns of few words, which stay numbers of them."""
ARROW: Final = {"string": pyarrow.string(), "int64": pyarrow.int64()}
KINDS: Final = frozenset(kind.value for kind in Kind)
FILLED: Final = {
    column.name: frozenset(kind.value for kind in column.kinds) if column.kinds else KINDS for column in COLUMNS
}
"""Of which kinds records have something in a column: a group of rows of one kind is read without the others."""


@dataclass(frozen=True, slots=True)
class BadFile:
    """``notice``: why it is left out."""

    node: str
    notice: str


@dataclass(frozen=True, slots=True)
class File:
    """``run``: whose records they are, or most of them; None if it does not say. ``size_bytes`` as it was found."""

    node: str
    path: str
    size_bytes: int
    parquet: parquet.ParquetFile

    @property
    def records(self) -> int:
        return int(self.parquet.metadata.num_rows)

    @property
    def run(self) -> int | None:
        told = (self.parquet.metadata.metadata or {}).get(RUN_KEY.encode(), b"")
        run = int(told) if told.isdigit() and len(told) < MOST_DIGITS else None
        return run if run is None or run < LIMIT else None

    @property
    def times_us(self) -> tuple[int | None, int | None]:
        """The first and the last record's."""
        return times(self.parquet.metadata)

    @property
    def replaces(self) -> tuple[str, ...]:
        """Paths of files all of which is in this one."""
        beside = self.path.rpartition("/")[0]
        return tuple(f"{beside}/{name}" for name in replaces(self.parquet.metadata))

    def pieces(self, kinds: Sequence[str], columns: Sequence[str], span: Span = ALWAYS) -> Iterator[pyarrow.Table]:
        """Records of these kinds, those out of ``span`` in part; columns that the file lacks are missing. Raises
        ArrowException for damage."""
        names = self.parquet.metadata.schema.names
        columns = [name for name in columns if name in names and not FILLED[name].isdisjoint(kinds)]
        for group, found in enumerate(self._kinds(names.index("kind"))):
            if not self._touches(group, span):
                continue
            if len(found) == 1 and found <= KINDS:
                if not found.isdisjoint(kinds):
                    yield from self._of_group(group, [name for name in columns if not FILLED[name].isdisjoint(found)])
            elif not found.isdisjoint(kinds) or self._has_any(group, kinds):
                yield from (_of_kinds(table, kinds) for table in self._of_group(group, columns))

    def _touches(self, group: int, span: Span) -> bool:
        """False where the file says that all records of these rows are of another time."""
        if span.is_all:
            return True
        metadata = self.parquet.metadata
        at_us = metadata.row_group(group).column(metadata.schema.names.index("at_us"))
        if not at_us.is_stats_set or not at_us.statistics.has_min_max:
            return True
        is_late_enough = span.from_us is None or at_us.statistics.max >= span.from_us
        return is_late_enough and (span.to_us is None or at_us.statistics.min <= span.to_us)

    def _has_any(self, group: int, kinds: Sequence[str]) -> bool:
        """One column tells it: the others need not be read where it has none."""
        return any(len(_of_kinds(table, kinds)) for table in self._of_group(group, ["kind"]))

    def _of_group(self, group: int, columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        for batch in self.parquet.iter_batches(AT_ONCE, row_groups=[group], columns=columns, use_threads=False):
            yield _plain(pyarrow.Table.from_batches([batch]))

    def _kinds(self, column: int) -> Iterator[frozenset[str]]:
        """Of each group of rows the first and the last of its kinds, by name; none where nobody knows."""
        metadata = self.parquet.metadata
        for group in range(metadata.num_row_groups):
            kind = metadata.row_group(group).column(column)
            is_known = kind.is_stats_set and kind.statistics.has_min_max
            yield frozenset((kind.statistics.min, kind.statistics.max)) if is_known else frozenset()


def _plain(table: pyarrow.Table) -> pyarrow.Table:
    """Columns of the types of ours: whoever wrote the file may have had another in Arrow, which keeps that. WORDS stay
    as they are."""
    for place, field in enumerate(table.schema):
        wanted = ARROW.get(TYPES.get(field.name, ""))
        if field.name not in WORDS and wanted is not None and field.type != wanted:
            table = table.set_column(place, field.name, table[field.name].cast(wanted))
    return table


def _of_kinds(table: pyarrow.Table, kinds: Sequence[str]) -> pyarrow.Table:
    kind = table["kind"].combine_chunks()
    is_kept = [word in kinds for word in kind.dictionary.to_pylist()]
    if all(is_kept) and not kind.null_count:
        return table
    places = kind.indices.fill_null(len(is_kept)).to_numpy()
    return table.take(pyarrow.array(numpy.flatnonzero(numpy.array([*is_kept, False])[places])))


def files(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[File | BadFile]:
    """Of columns node, path, size_bytes and content, which is null where the path is one of this machine."""
    for batch in batches:
        for node, path, size_bytes, content in zip(*(batch[name] for name in FILE_COLUMNS), strict=True):
            yield _opened(node.as_py() or "", path.as_py(), size_bytes.as_py(), content)


def _opened(node: str, path: str, size_bytes: int, content: pyarrow.BinaryScalar) -> File | BadFile:
    try:
        source = pyarrow.BufferReader(content.as_buffer()) if content.is_valid else _source(path)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else first_line(error)
        return BadFile(node, f"{shown(path)} cannot be read: {why}")
    try:
        found = _parquet(source)
        reason = wrong(found.metadata)
    except (pyarrow.ArrowException, OSError) as error:
        return BadFile(node, f"{shown(path)} {NO_LINK_LOG}: {first_line(error)}")
    if reason is not None:
        return BadFile(node, f"{shown(path)} {reason}")
    return File(node, path, size_bytes, found)


def _source(path: str) -> pyarrow.NativeFile:
    """Of a large file it reads what is asked for."""
    file = pyarrow.OSFile(path)
    return pyarrow.BufferReader(file.read_buffer()) if file.size() <= AT_ONCE_BYTES else file


def _parquet(source: pyarrow.NativeFile) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(source, read_dictionary=WORDS)
    except KeyError:
        # It lacks one of them: to look before would open each file twice.
        names = parquet.read_schema(source).names
        return parquet.ParquetFile(source, read_dictionary=[name for name in WORDS if name in names])


def damaged(path: str, error: Exception) -> str:
    return f"{shown(path)} {DAMAGED}: {first_line(error)}"


def shown(path: str) -> str:
    """As people write it: Spark says of what lies on this machine `file:/mnt/logs`."""
    return path.removeprefix("file:") if not path.startswith("file://") else path.removeprefix("file://")

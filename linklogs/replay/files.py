"""Files of link logs as a worker of Spark gets them, their octets in a column: what can be read of each, in pieces.

Reading them so costs a third of what Spark's own reader does, as no record passes through a row of it; and a file that
cannot be read is a sentence there too, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow
from pyarrow import parquet

from addressing.link_log import COLUMNS, RUN_KEY, Kind
from linklogs.footers import NO_LINK_LOG, TYPES, first_line, replaces, times, wrong
from linklogs.replay.codes import Numbers

AT_ONCE: Final = 1 << 20
"""Records of a piece at most; with all that is made of them, some 200 MB."""
LIMIT: Final = 1 << 63
"""Of a number in a column."""
MOST_DIGITS: Final = 20
WORDS: Final = ("kind", "event", "outcome", "part")
"""Columns of few words, which stay numbers of them."""
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
    """``run``: whose records they are, or most of them; None if it does not say."""

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

    def pieces(self, kinds: Sequence[str], columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Records of these kinds; columns that the file lacks are missing. Raises ArrowException for damage."""
        names = self.parquet.schema_arrow.names
        for group, kind in enumerate(self._kinds(names.index("kind"))):
            if kind is None:
                yield from self._of_mixed(group, kinds, [name for name in columns if name in names])
            elif kind in kinds:
                filled = [name for name in columns if name in names and kind in FILLED[name]]
                yield from self._of_group(group, filled)

    def _of_mixed(self, group: int, kinds: Sequence[str], columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Of a group of several kinds; it is not read any further where it has none of those."""
        if any(len(_kept(each, kinds)) for each in self._of_group(group, ["kind"])):
            for table in self._of_group(group, columns):
                kept = _kept(table, kinds)
                yield table if len(kept) == len(table) else table.take(pyarrow.array(kept))

    def _of_group(self, group: int, columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        for batch in self.parquet.iter_batches(AT_ONCE, row_groups=[group], columns=columns, use_threads=False):
            yield _plain(pyarrow.Table.from_batches([batch]))

    def _kinds(self, column: int) -> Iterator[str | None]:
        """Of each group of rows the one kind of all its records, None where there are several or nobody knows."""
        metadata = self.parquet.metadata
        for group in range(metadata.num_row_groups):
            kind = metadata.row_group(group).column(column)
            if not kind.is_stats_set or not kind.statistics.has_min_max:
                yield None
                continue
            least, largest = kind.statistics.min, kind.statistics.max
            yield least if least == largest and least in KINDS else None


def _plain(table: pyarrow.Table) -> pyarrow.Table:
    """Text as text: whoever wrote the file may have had it otherwise, and Arrow keeps that. WORDS stay as they are."""
    for place, field in enumerate(table.schema):
        if field.name not in WORDS and TYPES.get(field.name) == "string" and field.type != pyarrow.string():
            table = table.set_column(place, field.name, table[field.name].cast(pyarrow.string()))
    return table


def _kept(table: pyarrow.Table, kinds: Sequence[str]) -> Numbers:
    """The places of records of these kinds."""
    kind = table["kind"].combine_chunks()
    is_kept = numpy.array([word in kinds for word in kind.dictionary.to_pylist()] + [False])
    return numpy.flatnonzero(is_kept[kind.indices.fill_null(len(is_kept) - 1).to_numpy()])


def files(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[File | BadFile]:
    """Of columns node, path and content."""
    for batch in batches:
        for node, path, content in zip(batch["node"], batch["path"], batch["content"], strict=True):
            yield _opened(node.as_py() or "", path.as_py(), content.as_buffer())


def _opened(node: str, path: str, content: pyarrow.Buffer) -> File | BadFile:
    try:
        found = _parquet(content)
        reason = wrong(found.metadata)
    except (pyarrow.ArrowException, OSError) as error:
        return BadFile(node, f"{shown(path)} {NO_LINK_LOG}: {first_line(error)}")
    if reason is not None:
        return BadFile(node, f"{shown(path)} {reason}")
    return File(node, path, content.size, found)


def _parquet(content: pyarrow.Buffer) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=WORDS)
    except KeyError:
        # It lacks one of them: to look before would open each file twice.
        names = parquet.read_schema(pyarrow.BufferReader(content)).names
        words = [name for name in WORDS if name in names]
        return parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=words)


def shown(path: str) -> str:
    """As people write it: Spark says of what lies on this machine `file:/mnt/logs`."""
    return path.removeprefix("file:") if not path.startswith("file://") else path.removeprefix("file://")

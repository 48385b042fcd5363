"""Turns the state records of files, few and of all kinds, into rows of Spark, with facts about each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow
from pyarrow import compute

from linklogs.moments import TimeSpan
from linklogs.replay.clock_offsets import RunClock, ahead_of, times_us
from linklogs.replay.codes import END_US, LARGEST, TOLD, Numbers
from linklogs.replay.file_slices import SMALL_BYTES, FileSlice, packed, pieces
from linklogs.replay.files import WORDS, BadFile, ReplayFile, damaged, files
from linklogs.replay.repeats import TIMES, merged
from linklogs.replay.wait_spans import joined
from recording.columns import COLUMNS

FILE: Final = "file"
"""A kind that no record has: it marks a row about files themselves."""
CARRIED: Final = "carried"
"""A kind that no record has: it marks movements of small files, which are passed on to the aggregation."""
REST: Final = "what lies before that counts"

_SUMS: Final = ("count", "starved_us", "size_bytes", "took_us", "credit", "cost", "oldest_us", "unsettled_count",
                "depth_count", "depth_bytes", "acquired_count")  # fmt: skip

FILES_AT_ONCE: Final = 200
"""Number of files whose rows are made together, since filling in missing columns takes as long for few rows as for
many.
"""
ROWS_AT_ONCE: Final = 500_000
FEW_ROWS: Final = 2_000
"""A file with fewer rows is merged together with other files, since merging few rows alone takes longer."""

BETWEEN: Final = "\n"

_SPARK: Final = {"string": "string", "int64": "long", "binary": "binary"}
_MORE: Final = {
    "node": "string",
    "last_us": "int64",
    "notice": "string",
    "replaces": "string",
    TIMES: "int64",
    "moved": "binary",
}
"""More columns for a row of kind FILE, which stands for one or several files of a run.

``at_us`` and ``last_us`` are the times of the records, ``count`` their number, with ``size_bytes``. ``notice``: why a
file is left out; ``replaces``: files whose records are all in this file, with BETWEEN them. ``moved`` is for CARRIED
(linklogs/replay/file_slices.py), TIMES for all other kinds.
"""
_FIELDS: Final = {**{column.name: column.type for column in COLUMNS}, **_MORE}
TELLING: Final = ", ".join(f"`{name}` {_SPARK[kind]}" for name, kind in _FIELDS.items())

_TYPES: Final = {"string": pyarrow.string(), "int64": pyarrow.int64(), "binary": pyarrow.binary()}
_SCHEMA: Final = pyarrow.schema([(name, _TYPES[kind]) for name, kind in _FIELDS.items()])
_NAMES: Final = tuple(column.name for column in COLUMNS)
_OF_FILE: Final = ("node", "run", "replaces", "notice")
_OF_FILES: Final = {"at_us": "min", "last_us": "max", "count": "sum", "size_bytes": "sum"}

Row = dict[str, str | int | None]


@dataclass(frozen=True, slots=True)
class StateRows:
    """A function for workers of Spark: reads files, and yields their state records as rows with the columns of TELLING.

    ``clocks``: by node and run, the clocks whose offsets are subtracted from times. ``span``: the requested time, at
    whose ends merged rows are divided; no record is left out.
    """

    span: TimeSpan
    clocks: Mapping[str, Mapping[int, RunClock]] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        heard = _Heard()
        for file in files(batches):
            heard.hear(file, self.clocks.get(file.node, {}), self.span)
            if heard.is_enough:
                yield from heard.rows(self.span)
                heard = _Heard()
        if heard.of_files:
            yield from heard.rows(self.span)


@dataclass(slots=True)
class _Heard:
    """The records gathered from some files, before rows are made of the records.

    Each table of records has only the columns that its file has.
    """

    of_files: list[Row] = field(default_factory=list)
    told: list[pyarrow.Table] = field(default_factory=list)
    moved: list[FileSlice] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        return len(self.of_files) >= FILES_AT_ONCE or sum(map(len, self.told)) >= ROWS_AT_ONCE

    def hear(self, file: ReplayFile | BadFile, clocks: Mapping[int, RunClock], span: TimeSpan) -> None:
        if isinstance(file, BadFile):
            self.of_files.append({"node": file.node, "notice": file.notice})
            return
        notice = self._told(file, clocks, span)
        if file.size_bytes <= SMALL_BYTES:
            notice = self._moved(file, clocks, notice)
        if notice is not None:
            self.of_files.append({"node": file.node, "notice": notice})

    def _told(self, file: ReplayFile, clocks: Mapping[int, RunClock], span: TimeSpan) -> str | None:
        """Gather the state records of a file; return why some are unreadable, or None."""
        try:
            ahead = ahead_of(file, TOLD, clocks)
            told = [_of_node(_right(table, ahead.of(table)), file.node) for table in file.pieces(TOLD, _NAMES)]
            self.of_files.append(_counted(file, clocks))
            told = [joined(table, span, TIMES) if len(table) > FEW_ROWS else table for table in told]
            self.told += told
        except (pyarrow.ArrowException, OSError) as error:
            return damaged(file.path, error)
        return None

    def _moved(self, file: ReplayFile, clocks: Mapping[int, RunClock], notice: str | None) -> str | None:
        """Gather the movements of a small file; return ``notice``, which says why state records of it are unreadable.

        If ``notice`` is None, return a notice about movements that are unreadable, or None.
        """
        try:
            for piece in pieces(file, clocks):
                self.moved.append(FileSlice(piece.node, _right(piece.table, piece.ahead_us), 0))
        except (pyarrow.ArrowException, OSError) as error:
            return notice or f"{damaged(file.path, error)}; {REST}"
        return notice

    def rows(self, span: TimeSpan) -> Iterator[pyarrow.RecordBatch]:
        whole = [_SCHEMA.empty_table(), _conforming(self.told, span), _rows(self.of_files), _carried(self.moved)]
        yield from pyarrow.concat_tables(whole, promote_options="default").combine_chunks().to_batches()


def _counted(file: ReplayFile, clocks: Mapping[int, RunClock]) -> Row:
    first_us, last_us = times_us(file, clocks)
    if last_us is not None and last_us >= END_US:
        last_us = None
    known: Row = {"node": file.node, "run": file.run, "count": file.records, "size_bytes": file.size_bytes}
    return {**known, "at_us": first_us, "last_us": last_us, "replaces": BETWEEN.join(file.replaces) or None}


def _right(table: pyarrow.Table, ahead_us: Numbers | int) -> pyarrow.Table:
    if (isinstance(ahead_us, int) and ahead_us == 0) or "at_us" not in table.column_names:
        return table
    taken_us = ahead_us if isinstance(ahead_us, int) else pyarrow.array(ahead_us)
    return table.set_column(table.column_names.index("at_us"), "at_us", compute.subtract(table["at_us"], taken_us))


def _of_node(table: pyarrow.Table, node: str) -> pyarrow.Table:
    return table.append_column("node", pyarrow.repeat(pyarrow.scalar(node, pyarrow.string()), len(table)))


def _conforming(told: Sequence[pyarrow.Table], span: TimeSpan) -> pyarrow.Table:
    """Join the tables of state records into one, with null where a table lacks a column, and with fewer rows.

    Successive waits for credit become one row, and so do repeated records.
    """
    tables = [_SCHEMA.empty_table()]
    if told:
        tables.append(_sensible(_texts(pyarrow.concat_tables(told, promote_options="default").combine_chunks())))
    return merged(joined(pyarrow.concat_tables(tables, promote_options="default"), span, TIMES), span)


def _sensible(table: pyarrow.Table) -> pyarrow.Table:
    """Cut the sums in state records to the range from 0 to LARGEST, since larger ones would overflow when added up."""
    for place, name in enumerate(table.column_names):
        if name in _SUMS:
            least = compute.min_element_wise(table[name], LARGEST, skip_nulls=False)
            table = table.set_column(place, name, compute.max_element_wise(least, 0, skip_nulls=False))
    return table


def _carried(moved: Sequence[FileSlice]) -> pyarrow.Table:
    found = list(packed(moved))
    nodes, octets = ([each[place] for each in found] for place in range(2))
    columns = {"node": pyarrow.array(nodes, pyarrow.string()), "moved": pyarrow.array(octets, pyarrow.binary())}
    return pyarrow.table({**columns, "kind": pyarrow.repeat(pyarrow.scalar(CARRIED), len(found))})


def _rows(of_files: Sequence[Row]) -> pyarrow.Table:
    """Make one row for all files of a run that have no notice and replace no files, and a row for each other file."""
    columns = {
        name: pyarrow.array([row.get(name) for row in of_files], _SCHEMA.field(name).type)
        for name in (*_OF_FILE, *_OF_FILES)
    }
    summed = pyarrow.table(columns).group_by(_OF_FILE, use_threads=False).aggregate(list(_OF_FILES.items()))
    named = summed.rename_columns([*_OF_FILE, *_OF_FILES])
    return named.append_column("kind", pyarrow.repeat(pyarrow.scalar(FILE), len(named)))


def _texts(table: pyarrow.Table) -> pyarrow.Table:
    for place, name in enumerate(table.column_names):
        if name in WORDS:
            table = table.set_column(place, name, table[name].cast(pyarrow.string()))
    return table

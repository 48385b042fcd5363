"""What files tell apart from what was moved, as rows of Spark: few, of all kinds; and how much there is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow
from pyarrow import compute

from addressing.link_log import COLUMNS, Kind
from linklogs.footers import first_line
from linklogs.replay.ahead import Ahead, Clock, ahead_of, times_us
from linklogs.replay.codes import END_US
from linklogs.replay.files import WORDS, BadFile, File, files, shown
from linklogs.replay.repeated import TIMES, merged

MOVED: Final = (Kind.DELIVERY.value, Kind.TRAFFIC.value, Kind.MESSAGE.value)
TOLD: Final = tuple(kind.value for kind in Kind if kind.value not in MOVED)
FILE: Final = "file"
"""A kind that no record has: of files themselves."""

FILES_AT_ONCE: Final = 200
"""To fill in what each lacks takes as long for a few rows as for many."""

BETWEEN: Final = "\n"

_SPARK: Final = {"string": "string", "int64": "long"}
_MORE: Final = {
    "node": "string",
    "last_us": "int64",
    "notice": "string",
    "replaces": "string",
    TIMES: "int64",
}
"""Of a FILE, one or several of a run: ``at_us`` and ``last_us`` of its records, ``count`` of them, ``size_bytes``.

``notice``: why it is left out; ``replaces``: files all of which is in it, with BETWEEN them. TIMES is of the others.
"""
_FIELDS: Final = {**{column.name: column.type for column in COLUMNS}, **_MORE}
TELLING: Final = ", ".join(f"`{name}` {_SPARK[kind]}" for name, kind in _FIELDS.items())

_TYPES: Final = {"string": pyarrow.string(), "int64": pyarrow.int64()}
_SCHEMA: Final = pyarrow.schema([(name, _TYPES[kind]) for name, kind in _FIELDS.items()])
_NAMES: Final = tuple(column.name for column in COLUMNS)
_OF_FILE: Final = ("node", "run", "replaces", "notice")
_OF_FILES: Final = {"at_us": "min", "last_us": "max", "count": "sum", "size_bytes": "sum"}

Row = dict[str, str | int | None]


@dataclass(frozen=True, slots=True)
class Telling:
    """From node, path and content of files to TELLING. ``clocks``: by node and run, what to take off of its times."""

    clocks: Mapping[str, Mapping[int, Clock]] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        told: list[pyarrow.Table] = []
        of_files: list[Row] = []
        for file in files(batches):
            of_files.append(_take(file, told, self.clocks.get(file.node, {})))
            if len(of_files) == FILES_AT_ONCE:
                yield from _conforming(told, of_files)
                told, of_files = [], []
        if of_files:
            yield from _conforming(told, of_files)


def _take(file: File | BadFile, told: list[pyarrow.Table], clocks: Mapping[int, Clock]) -> Row:
    """The row of the file; what it tells goes to ``told``, each piece with some of the columns."""
    if isinstance(file, BadFile):
        return {"node": file.node, "notice": file.notice}
    try:
        ahead = ahead_of(file, TOLD, clocks)
        told += [_of_node(_right(piece, ahead), file.node) for piece in file.pieces(TOLD, _NAMES)]
        first_us, last_us = times_us(file, clocks)
    except (pyarrow.ArrowException, OSError) as error:
        return {"node": file.node, "notice": f"{shown(file.path)} is damaged: {first_line(error)}"}
    if last_us is not None and last_us >= END_US:
        last_us = None
    known: Row = {"node": file.node, "run": file.run, "count": file.records, "size_bytes": file.size_bytes}
    return {**known, "at_us": first_us, "last_us": last_us, "replaces": BETWEEN.join(file.replaces) or None}


def _right(table: pyarrow.Table, ahead: Ahead) -> pyarrow.Table:
    ahead_us = ahead.of(table)
    if (isinstance(ahead_us, int) and ahead_us == 0) or "at_us" not in table.column_names:
        return table
    taken_us = ahead_us if isinstance(ahead_us, int) else pyarrow.array(ahead_us)
    return table.set_column(table.column_names.index("at_us"), "at_us", compute.subtract(table["at_us"], taken_us))


def _of_node(table: pyarrow.Table, node: str) -> pyarrow.Table:
    return table.append_column("node", pyarrow.repeat(pyarrow.scalar(node, pyarrow.string()), len(table)))


def _conforming(told: Sequence[pyarrow.Table], of_files: Sequence[Row]) -> Iterator[pyarrow.RecordBatch]:
    """Null where a table has no such column."""
    tables = [_SCHEMA.empty_table()]
    if told:
        tables.append(_texts(pyarrow.concat_tables(told, promote_options="default").combine_chunks()))
    rows = merged(pyarrow.concat_tables(tables, promote_options="default"))
    whole = pyarrow.concat_tables([_SCHEMA.empty_table(), rows, _rows(of_files)], promote_options="default")
    yield from whole.combine_chunks().to_batches()


def _rows(of_files: Sequence[Row]) -> pyarrow.Table:
    """One for all of a run of which there is nothing else to be said."""
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

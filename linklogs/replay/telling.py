"""What files tell apart from what was moved, as rows of Spark: few, of all kinds; and a row for each file itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow

from addressing.link_log import COLUMNS, Kind
from linklogs.footers import first_line
from linklogs.replay.files import WORDS, BadFile, File, files, shown

MOVED: Final = (Kind.DELIVERY.value, Kind.TRAFFIC.value, Kind.MESSAGE.value)
TOLD: Final = tuple(kind.value for kind in Kind if kind.value not in MOVED)
FILE: Final = "file"
"""A kind that no record has: one row for each file."""

TABLES_AT_ONCE: Final = 200
"""To fill in what each lacks takes as long for a few rows as for many."""

BETWEEN: Final = "\n"

_SPARK: Final = {"string": "string", "int64": "long"}
_MORE: Final = {"node": "string", "last_us": "int64", "notice": "string", "file": "string", "replaces": "string"}
"""Of a FILE: ``at_us`` and ``last_us`` of its records, ``count`` of them, ``size_bytes``, ``file``: where it is.

``notice``: why it is left out; ``replaces``: files all of which is in it, with BETWEEN them.
"""
_FIELDS: Final = {**{column.name: column.type for column in COLUMNS}, **_MORE}
TELLING: Final = ", ".join(f"`{name}` {_SPARK[kind]}" for name, kind in _FIELDS.items())

_TYPES: Final = {"string": pyarrow.string(), "int64": pyarrow.int64()}
_SCHEMA: Final = pyarrow.schema([(name, _TYPES[kind]) for name, kind in _FIELDS.items()])
_NAMES: Final = tuple(column.name for column in COLUMNS)


def telling(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """From node, path and content of files to TELLING."""
    waiting: list[pyarrow.Table] = []
    for table in _tables(batches):
        waiting.append(table)
        if len(waiting) == TABLES_AT_ONCE:
            yield from _conforming(waiting)
            waiting = []
    if waiting:
        yield from _conforming(waiting)


def _tables(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Each with some of the columns."""
    for file in files(batches):
        if isinstance(file, BadFile):
            yield _row(file.node, {"notice": file.notice})
            continue
        try:
            told = [_of_node(piece, file.node) for piece in file.pieces(TOLD, _NAMES)]
        except (pyarrow.ArrowException, OSError) as error:
            yield _row(file.node, {"notice": f"{shown(file.path)} is damaged: {first_line(error)}"})
            continue
        yield from (*told, _of_file(file))


def _of_file(file: File) -> pyarrow.Table:
    first_us, last_us = file.times_us
    known = {"run": file.run, "count": file.records, "size_bytes": file.size_bytes, "file": file.path}
    replaces = BETWEEN.join(file.replaces) or None
    return _row(file.node, {**known, "at_us": first_us, "last_us": last_us, "replaces": replaces})


def _row(node: str, values: Mapping[str, str | int | None]) -> pyarrow.Table:
    return pyarrow.Table.from_pylist([{**values, "kind": FILE, "node": node}], _SCHEMA)


def _of_node(table: pyarrow.Table, node: str) -> pyarrow.Table:
    for place, name in enumerate(table.column_names):
        if name in WORDS:
            table = table.set_column(place, name, table[name].cast(pyarrow.string()))
    return table.append_column("node", pyarrow.repeat(pyarrow.scalar(node, pyarrow.string()), len(table)))


def _conforming(tables: Sequence[pyarrow.Table]) -> Iterator[pyarrow.RecordBatch]:
    """Null where a table has no such column."""
    empty = _SCHEMA.empty_table()
    yield from pyarrow.concat_tables([empty, *tables], promote_options="default").combine_chunks().to_batches()

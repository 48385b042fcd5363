"""What files tell apart from what was moved, as rows of Spark: few, of all kinds; and a row for each file itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow

from addressing.link_log import COLUMNS, Kind
from linklogs.replay.files import BadFile, File, files

MOVED: Final = (Kind.DELIVERY.value, Kind.TRAFFIC.value, Kind.MESSAGE.value)
TOLD: Final = tuple(kind.value for kind in Kind if kind.value not in MOVED)
FILE: Final = "file"
"""A kind that no record has: one row for each file."""

_SPARK: Final = {"string": "string", "int64": "long"}
_MORE: Final = {"node": "string", "last_us": "int64", "notice": "string"}
"""Of a FILE: ``at_us`` and ``last_us`` of its records, ``count`` of them; ``notice``: why it is left out."""
_FIELDS: Final = {**{column.name: column.type for column in COLUMNS}, **_MORE}
TELLING: Final = ", ".join(f"`{name}` {_SPARK[kind]}" for name, kind in _FIELDS.items())

_TYPES: Final = {"string": pyarrow.string(), "int64": pyarrow.int64()}
_SCHEMA: Final = pyarrow.schema([(name, _TYPES[kind]) for name, kind in _FIELDS.items()])
_NAMES: Final = tuple(column.name for column in COLUMNS)


def telling(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """From node, path and content of files to TELLING."""
    for file in files(batches):
        if isinstance(file, BadFile):
            yield _row(file.node, {"notice": file.notice})
            continue
        try:
            told = [_conforming(piece, file.node) for piece in file.pieces(TOLD, _NAMES)]
        except (pyarrow.ArrowException, OSError) as error:
            yield _row(file.node, {"notice": f"{file.path} is damaged: {error}"})
            continue
        yield from (batch for table in told for batch in table.to_batches())
        yield _of_file(file)


def _of_file(file: File) -> pyarrow.RecordBatch:
    first_us, last_us = file.times_us
    return _row(file.node, {"run": file.run, "count": file.records, "at_us": first_us, "last_us": last_us})


def _row(node: str, values: dict[str, str | int | None]) -> pyarrow.RecordBatch:
    row = {**values, "kind": FILE, "node": node}
    arrays = [pyarrow.array([row.get(field.name)], field.type) for field in _SCHEMA]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _conforming(table: pyarrow.Table, node: str) -> pyarrow.Table:
    count = len(table)
    columns = {name: table[name] for name in table.column_names}
    columns["node"] = pyarrow.repeat(pyarrow.scalar(node, pyarrow.string()), count)
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pyarrow.nulls(count, field.type)
        for field in _SCHEMA
    ]
    return pyarrow.Table.from_arrays(arrays, schema=_SCHEMA)

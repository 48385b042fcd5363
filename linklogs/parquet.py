"""The Parquet format of the link log: the columns as Arrow types, and a writer that packs them.

A batch becomes a row group. State records share one row group, and each kind of movement has its own, so that readers
skip unwanted kinds by the statistics of row groups. Text is handed over as numbers of words, as Parquet keeps it; in
the file it is plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy
import pyarrow
from pyarrow import parquet

from recording.columns import COLUMNS, MESH_KEY, NODE_KEY, RUN_KEY, SCHEMA_VERSION, VERSION_KEY, RecordKind

TEXT: Final = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
_TYPES: Final = {"string": TEXT, "int64": pyarrow.int64()}

SCHEMA: Final = pyarrow.schema([(column.name, _TYPES[column.type]) for column in COLUMNS])
"""The schema of a batch. Readers of a file see text in place of numbered words."""

MOVED: Final = (RecordKind.DELIVERY, RecordKind.TRAFFIC, RecordKind.MESSAGE)
"""Kinds with many records."""
TOLD: Final = tuple(kind for kind in RecordKind if kind not in MOVED)
"""Kinds with few records, in one row group: a small file is mostly footer, with every column of every row group."""

RISING: Final = ("at_us", "took_us")
"""Columns with too many values for a dictionary, and small steps between them."""

VARIED: Final = ("at_us", "incoming", "outgoing", "outcome", "count", "size_bytes", "took_us", "queue")
"""Columns that fill files of many deliveries, packed by zstd.

Other columns use snappy: zstd unpacks small files in three times the time.
"""

SKIPPED_BY: Final = ("kind", "event", "at_us")
"""Columns with a minimum and maximum for each row group."""

Words: TypeAlias = Any
"""A pyarrow.DictionaryArray."""


def metadata(node: str, run: int, mesh: str) -> dict[str, str]:
    """The metadata of a node's file; ``run`` in us of UTC, as in the column of this name."""
    return {VERSION_KEY: str(SCHEMA_VERSION), NODE_KEY: node, RUN_KEY: str(run), MESH_KEY: mesh}


def open_writer(sink: Path | str | IO[bytes], described: Mapping[str, str]) -> parquet.ParquetWriter:
    """Each batch written becomes a row group. Metadata may be added as long as the writer is open."""
    names = [column.name for column in COLUMNS if column.name not in RISING]
    writer = parquet.ParquetWriter(
        sink,
        SCHEMA,
        compression={name: "zstd" if name in VARIED else "snappy" for name in SCHEMA.names},
        use_dictionary=names,
        column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
        # Most columns of a batch are null: with small steps, counting nulls costs more than all values.
        write_batch_size=1 << 16,
        # Columns that readers skip by. Links and sizes vary within every row group, and counting nulls has a price.
        write_statistics=list(SKIPPED_BY),
        # With the schema stored, only pyarrow would read words by number, and Spark text.
        store_schema=False,
    )
    writer.add_key_value_metadata(dict(described))
    return writer


def batch(columns: Mapping[str, Any], count: int) -> pyarrow.RecordBatch:
    """A batch of ``count`` records, null where no column is given. A column is an Arrow or numpy array of this length.

    Raises KeyError for a column that the schema does not have.
    """
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise KeyError(f"unknown column {unknown[0]!r} in a record: recording/columns.py lists all columns")
    # One null array for all columns of a type: filling a new array costs as much as writing it.
    nulls = {kind: pyarrow.nulls(count, kind) for kind in _TYPES.values()}
    arrays = [
        _array(columns[field.name], field.type) if field.name in columns else nulls[field.type] for field in SCHEMA
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def batch_of_rows(rows: Sequence[Mapping[str, str | int | None]]) -> pyarrow.RecordBatch:
    """A batch of a few records, each with the columns that it fills in."""
    given = dict.fromkeys(name for row in rows for name in row)
    return batch({name: [row.get(name) for row in rows] for name in given}, len(rows))


def words(codes: numpy.ndarray[Any, Any], dictionary: Sequence[str]) -> Words:
    """A column of text: ``codes`` are places in ``dictionary``."""
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes, pyarrow.int32()), pyarrow.array(dictionary, pyarrow.string())
    )


def same(word: str, count: int) -> Words:
    """A column with the same word in all rows."""
    return words(numpy.zeros(count, numpy.int32), [word])


def _array(values: Any, wanted: pyarrow.DataType) -> pyarrow.Array:
    if isinstance(values, pyarrow.Array):
        return values
    if wanted == TEXT:
        return pyarrow.array(values, pyarrow.string()).dictionary_encode()
    return pyarrow.array(values, wanted)

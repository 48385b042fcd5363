"""The Parquet format of link logs: the columns as Arrow types, and the settings of Parquet's writer.

A batch becomes a row group. State records share row groups, and each kind of movement has its own, so that readers
skip unwanted kinds by the statistics of row groups. A batch has text in Arrow's dictionary form, a number for each
distinct text, as Parquet stores text; readers of a file see plain text.
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
"""The schema of a batch, with text in dictionary form; readers of a file see plain text."""

MOVED: Final = (RecordKind.DELIVERY, RecordKind.TRAFFIC, RecordKind.MESSAGE)
"""The kinds of movement, which have many records."""
TOLD: Final = tuple(kind for kind in RecordKind if kind not in MOVED)
"""The kinds of state records, which are few, and share one row group.

More row groups would make files larger: a small file is mostly footer, with every column of every row group.
"""

RISING: Final = ("at_us", "took_us")
"""Columns stored as differences: their values are too many for a dictionary, and the steps between them small."""

VARIED: Final = ("at_us", "incoming", "outgoing", "outcome", "count", "size_bytes", "took_us", "queue")
"""Columns that take most of the bytes in files of many deliveries, compressed with zstd.

Other columns are compressed with snappy: reading small files with zstd takes three times as long.
"""

SKIPPED_BY: Final = ("kind", "event", "at_us")
"""Columns with a minimum and maximum for each row group, by which readers skip row groups."""

Words: TypeAlias = Any
"""A column of text in dictionary form: a pyarrow.DictionaryArray."""


def metadata(node: str, run: int, mesh: str) -> dict[str, str]:
    """Return the metadata of a file: node, mesh, schema version and ``run``, the node's start in us of UTC."""
    return {VERSION_KEY: str(SCHEMA_VERSION), NODE_KEY: node, RUN_KEY: str(run), MESH_KEY: mesh}


def open_writer(sink: Path | str | IO[bytes], described: Mapping[str, str]) -> parquet.ParquetWriter:
    """Open a writer of a link log file with the metadata ``described``.

    Each batch written becomes a row group. Metadata may be added as long as the writer is open.
    """
    names = [column.name for column in COLUMNS if column.name not in RISING]
    writer = parquet.ParquetWriter(
        sink,
        SCHEMA,
        compression={name: "zstd" if name in VARIED else "snappy" for name in SCHEMA.names},
        use_dictionary=names,
        column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
        # Parquet's writer takes many rows at a time: most columns are null, and with few rows at a time counting nulls
        # takes longer than writing all values.
        write_batch_size=1 << 16,
        # Only columns that help readers to skip row groups have statistics: links and sizes vary within every row
        # group, and counting nulls takes time.
        write_statistics=list(SKIPPED_BY),
        # Arrow's schema is not stored in the file: with this schema, pyarrow would read text in dictionary form, though
        # Spark reads plain text.
        store_schema=False,
    )
    writer.add_key_value_metadata(dict(described))
    return writer


def batch(columns: Mapping[str, Any], count: int) -> pyarrow.RecordBatch:
    """Make a batch of ``count`` records; columns that are not given are null.

    A column is an Arrow or numpy array of this length. Raises KeyError for a column that the schema does not have.
    """
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise KeyError(f"a record was given the unknown column {unknown[0]!r}: recording/columns.py lists all columns")
    # One array of nulls serves all columns of a type: filling another array takes as long as writing the array.
    nulls = {kind: pyarrow.nulls(count, kind) for kind in _TYPES.values()}
    arrays = [
        _array(columns[field.name], field.type) if field.name in columns else nulls[field.type] for field in SCHEMA
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def batch_of_rows(rows: Sequence[Mapping[str, str | int | None]]) -> pyarrow.RecordBatch:
    """Make a batch of a few records, given as rows; a column that a row lacks is null in the row's record."""
    given = dict.fromkeys(name for row in rows for name in row)
    return batch({name: [row.get(name) for row in rows] for name in given}, len(rows))


def words(codes: numpy.ndarray[Any, Any], dictionary: Sequence[str]) -> Words:
    """Make a column of text from ``codes``: each is the place of a text in ``dictionary``."""
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes, pyarrow.int32()), pyarrow.array(dictionary, pyarrow.string())
    )


def same(word: str, count: int) -> Words:
    """Make a column of text with ``word`` in all ``count`` rows."""
    return words(numpy.zeros(count, numpy.int32), [word])


def _array(values: Any, wanted: pyarrow.DataType) -> pyarrow.Array:
    if isinstance(values, pyarrow.Array):
        return values
    if wanted == TEXT:
        return pyarrow.array(values, pyarrow.string()).dictionary_encode()
    return pyarrow.array(values, wanted)

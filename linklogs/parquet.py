"""How does a file of the link log lie on the disk? The columns as Arrow types, and a Parquet writer that packs them.

A batch becomes a row group: all that was told is one, and of what was moved each kind has its own. Readers skip what
they do not want by the statistics of it.
Text is handed over as numbers of words, which is how Parquet keeps it; in the file it is plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy
import pyarrow
from pyarrow import parquet

from addressing.link_log import COLUMNS, MESH_KEY, NODE_KEY, RUN_KEY, SCHEMA_VERSION, VERSION_KEY, Kind

TEXT: Final = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
_TYPES: Final = {"string": TEXT, "int64": pyarrow.int64()}

SCHEMA: Final = pyarrow.schema([(column.name, _TYPES[column.type]) for column in COLUMNS])
"""Of a batch. Readers of a file see text where this has words by number."""

MOVED: Final = (Kind.DELIVERY, Kind.TRAFFIC, Kind.MESSAGE)
"""Kinds with many records."""
TOLD: Final = tuple(kind for kind in Kind if kind not in MOVED)
"""Kinds with few. Small files are mostly footer, which names each column of each row group: so they share one."""

RISING: Final = ("at_us", "took_us")
"""Columns with too many values for a dictionary, and small steps between them."""

VARIED: Final = ("at_us", "incoming", "outgoing", "outcome", "count", "size_bytes", "took_us", "queue")
"""Columns that make a file of many deliveries large. To unpack any of a small file takes zstd three times as long."""

SKIPPED_BY: Final = ("kind", "event", "at_us")
"""Columns whose least and largest value in a row group are told."""

Words: TypeAlias = Any
"""A pyarrow.DictionaryArray."""


def metadata(node: str, run: int, mesh: str) -> dict[str, str]:
    """Whose file it is; ``run`` in us of UTC, as the column of that name."""
    return {VERSION_KEY: str(SCHEMA_VERSION), NODE_KEY: node, RUN_KEY: str(run), MESH_KEY: mesh}


def open_writer(sink: Path | str | IO[bytes], described: Mapping[str, str]) -> parquet.ParquetWriter:
    """Each batch that is written to it is a row group. More metadata may follow as long as it is open."""
    names = [column.name for column in COLUMNS if column.name not in RISING]
    writer = parquet.ParquetWriter(
        sink,
        SCHEMA,
        compression={name: "zstd" if name in VARIED else "snappy" for name in SCHEMA.names},
        use_dictionary=names,
        column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
        # Most columns of a batch are null: with small steps, counting that costs more than all values.
        write_batch_size=1 << 16,
        # What readers skip by. Of links and sizes every row group has all, and of nulls counting them has a price.
        write_statistics=list(SKIPPED_BY),
        # With it, pyarrow alone would read words by number, and Spark text.
        store_schema=False,
    )
    writer.add_key_value_metadata(dict(described))
    return writer


def batch(columns: Mapping[str, Any], count: int) -> pyarrow.RecordBatch:
    """Of ``count`` records, null where no column is given. A column is an Arrow or numpy array of that length.

    Raises KeyError for a column that the schema does not have.
    """
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise KeyError(f"a record has no column {unknown[0]!r}: addressing/link_log.py names those there are")
    # One for all columns of a type: filling each anew costs as much as to write them.
    nulls = {kind: pyarrow.nulls(count, kind) for kind in _TYPES.values()}
    arrays = [
        _array(columns[field.name], field.type) if field.name in columns else nulls[field.type] for field in SCHEMA
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def batch_of_rows(rows: Sequence[Mapping[str, str | int | None]]) -> pyarrow.RecordBatch:
    """Of records that are few, each the columns that it fills in."""
    given = dict.fromkeys(name for row in rows for name in row)
    return batch({name: [row.get(name) for row in rows] for name in given}, len(rows))


def words(codes: numpy.ndarray[Any, Any], dictionary: Sequence[str]) -> Words:
    """A column of text: ``codes`` are places in ``dictionary``."""
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes, pyarrow.int32()), pyarrow.array(dictionary, pyarrow.string())
    )


def same(word: str, count: int) -> Words:
    """A column that has one word throughout."""
    return words(numpy.zeros(count, numpy.int32), [word])


def _array(values: Any, wanted: pyarrow.DataType) -> pyarrow.Array:
    if isinstance(values, pyarrow.Array):
        return values
    if wanted == TEXT:
        return pyarrow.array(values, pyarrow.string()).dictionary_encode()
    return pyarrow.array(values, wanted)

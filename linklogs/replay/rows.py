"""The rows of all tables of traffic, in the single shape that a worker of Spark may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow

from linklogs.replay.measures import MEASURES

_KEYS: Final = {
    "level": "string",
    "window": "long",
    "node": "string",
    "run": "long",
    "connection": "long",
    "link": "long",
    "other": "long",
    "address": "string",
    "user": "string",
    "side": "string",
    "peer": "string",
    "what": "string",
    "bucket": "long",
    "least_us": "long",
    "largest_us": "long",
    "sums": "binary",
}
"""Columns of keys; ``sums`` has sums in Arrow's stream format, for another pass."""

_FIELDS: Final = {**_KEYS, **MEASURES}
ROWS: Final = ", ".join(f"`{name}` {kind}" for name, kind in _FIELDS.items())

_TYPES: Final = {
    "string": pyarrow.string(),
    "long": pyarrow.int64(),
    "double": pyarrow.float64(),
    "binary": pyarrow.binary(),
}
SCHEMA: Final = pyarrow.schema([(name, _TYPES[kind]) for name, kind in _FIELDS.items()])


@dataclass(frozen=True, slots=True)
class TrafficRows:
    """A number of rows of one aggregation level, of which `batch` makes an Arrow batch."""

    level: str
    count: int

    def batch(self, columns: Mapping[str, pyarrow.Array]) -> pyarrow.RecordBatch:
        """Make an Arrow batch of the rows of this level; a column that is not given is null."""
        given = {"level": pyarrow.array([self.level] * self.count, pyarrow.string()), **columns}
        nulls = {kind: pyarrow.nulls(self.count, kind) for kind in _TYPES.values()}
        arrays = [given[field.name].cast(field.type) if field.name in given else nulls[field.type] for field in SCHEMA]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)

"""Files of link logs as a worker of Spark gets them, their octets in a column: what can be read of each, in pieces.

Reading them so costs a third of what Spark's own reader does, as no record passes through a row of it; and a file that
cannot be read is a sentence there too, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow
from pyarrow import parquet

from addressing.link_log import RUN_KEY
from linklogs.footers import NO_LINK_LOG, first_line, times, wrong

AT_ONCE: Final = 1 << 20
"""Records of a piece at most; with all that is made of them, some 200 MB."""
WORDS: Final = ("kind", "event", "outcome", "part")
"""Columns of few words, which stay numbers of them."""


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
    parquet: parquet.ParquetFile

    @property
    def records(self) -> int:
        return int(self.parquet.metadata.num_rows)

    @property
    def run(self) -> int | None:
        told = (self.parquet.metadata.metadata or {}).get(RUN_KEY.encode(), b"")
        return int(told) if told.isdigit() else None

    @property
    def times_us(self) -> tuple[int | None, int | None]:
        """The first and the last record's."""
        return times(self.parquet.metadata)

    def pieces(self, kinds: Sequence[str], columns: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Records of these kinds; columns that the file lacks are missing. Raises ArrowException for damage."""
        names = self.parquet.schema_arrow.names
        groups = [i for i in range(self.parquet.num_row_groups) if self._may_have(i, kinds)]
        if not groups:
            return
        wanted = [name for name in columns if name in names]
        kept = pyarrow.array(kinds, pyarrow.string())
        for batch in self.parquet.iter_batches(AT_ONCE, row_groups=groups, columns=wanted, use_threads=False):
            table = pyarrow.Table.from_batches([batch])
            kind = table["kind"].combine_chunks()
            is_kept = pyarrow.compute.is_in(kind.dictionary, kept).take(kind.indices)
            yield table if pyarrow.compute.all(is_kept).as_py() else table.filter(is_kept)

    def _may_have(self, group: int, kinds: Sequence[str]) -> bool:
        """By the least and the largest word of a group of rows."""
        kind = self.parquet.metadata.row_group(group).column(self.parquet.schema_arrow.names.index("kind"))
        if not kind.is_stats_set or not kind.statistics.has_min_max:
            return True
        return any(kind.statistics.min <= each <= kind.statistics.max for each in kinds)


def files(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[File | BadFile]:
    """Of columns node, path and content."""
    for batch in batches:
        for node, path, content in zip(batch["node"], batch["path"], batch["content"], strict=True):
            yield _opened(node.as_py() or "", path.as_py(), content.as_buffer())


def _opened(node: str, path: str, content: pyarrow.Buffer) -> File | BadFile:
    try:
        found = parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=list(WORDS))
    except (pyarrow.ArrowException, OSError) as error:
        return BadFile(node, f"{path} {NO_LINK_LOG}: {first_line(error)}")
    reason = wrong(found.metadata)
    return BadFile(node, f"{path} {reason}") if reason is not None else File(node, path, found)

"""Many sums with a histogram each, as columns, in the form in which one pass hands them to the next through Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy
import pyarrow
import pyarrow.ipc

from linklogs.replay.codes import Numbers

PACKED: Final = "part int, sums binary, notice string"
"""Columns of packed sums: the sums of one part, in Arrow's stream format, or a notice why a file was unreadable."""
_PACKED: Final = pyarrow.schema([("part", pyarrow.int32()), ("sums", pyarrow.binary()), ("notice", pyarrow.string())])


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of movements, as arrays of equal length; only ``pairs``, with one histogram after the other, is longer.

    ``link``: the incoming or outgoing link, by ``side``, or the queue. ``other``: the other link of a pair, else 0.
    ``window``: begin of the window in us. ``begins``: the index in ``pairs`` at which each histogram begins.
    """

    run: Numbers
    side: Numbers
    link: Numbers
    other: Numbers
    what: Numbers
    window: Numbers
    messages: Numbers
    size_bytes: Numbers
    longest_us: Numbers
    begins: Numbers
    pairs: Numbers

    def __len__(self) -> int:
        return len(self.run)

    def lengths(self) -> Numbers:
        """Return the number of buckets in each histogram."""
        return numpy.diff(self.begins, append=len(self.pairs))

    def where(self, mask: Numbers) -> Sums:
        lengths = self.lengths()
        kept = lengths[mask]
        columns = [getattr(self, name)[mask] for name in _COLUMNS]
        return Sums(*columns, *[numpy.cumsum(kept) - kept, self.pairs[numpy.repeat(mask, lengths)]])

    @classmethod
    def joined(cls, parts: Sequence[Sums]) -> Sums:
        columns = [numpy.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS]
        lengths = numpy.concatenate([part.lengths() for part in parts])
        pairs = numpy.concatenate([part.pairs for part in parts])
        return cls(*columns, *[numpy.cumsum(lengths) - lengths, pairs])

    def packed(self) -> bytes:
        names = (*_COLUMNS, "begins")
        rows = pyarrow.record_batch([pyarrow.array(getattr(self, name)) for name in names], names=list(names))
        pairs = pyarrow.record_batch([pyarrow.array(self.pairs)], names=["pairs"])
        sink = pyarrow.BufferOutputStream()
        for batch in (rows, pairs):
            with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
        packed: bytes = sink.getvalue().to_pybytes()
        return packed

    @classmethod
    def unpacked(cls, packed: pyarrow.Buffer) -> Sums:
        source = pyarrow.BufferReader(packed)
        tables = [pyarrow.ipc.open_stream(source).read_all() for _ in range(2)]
        return cls(*(column.to_numpy() for table in tables for column in table.columns))


_COLUMNS: Final = tuple(each.name for each in fields(Sums))[:-2]


def packed_by(parts: Numbers, sums: Sums) -> pyarrow.RecordBatch:
    """Pack the sums into a batch with a row for each part; ``parts`` has the number of the part of each sum."""
    found = numpy.unique(parts)
    packed = [sums.where(parts == part).packed() if len(found) > 1 else sums.packed() for part in found]
    return _packed(found, packed, [None] * len(found))


def noticed(notices: Sequence[str]) -> pyarrow.RecordBatch:
    """Make an Arrow batch with a row for each of ``notices`` about unreadable files, and without sums."""
    count = len(notices)
    return _packed(numpy.zeros(count, numpy.int32), [None] * count, notices)


def _packed(parts: Numbers, sums: Sequence[bytes | None], notices: Sequence[str | None]) -> pyarrow.RecordBatch:
    values = zip((parts, sums, notices), _PACKED.types, strict=True)
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(each, kind) for each, kind in values], schema=_PACKED)


def unpacked(batches: Iterable[pyarrow.RecordBatch]) -> tuple[Sums | None, list[str]]:
    """Unpack all sums in the batches into one object, or None if there are none; return the notices, too."""
    found: list[Sums] = []
    notices: list[str] = []
    for batch in batches:
        found += [Sums.unpacked(each.as_buffer()) for each in batch["sums"] if each.is_valid]
        if "notice" in batch.schema.names:
            notices += batch["notice"].drop_null().to_pylist()
    return Sums.joined(found) if found else None, notices

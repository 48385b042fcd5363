"""Reads the movements of files as Arrow tables, and packs the movements of small files.

Opening a small file takes as long as reading all of it: the pass over state records opens each small file once, and
hands its movements, packed, to the aggregation. The aggregation reads large files again, piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy
import pyarrow
import pyarrow.ipc

from linklogs.moments import ALWAYS, TimeSpan
from linklogs.replay.clock_offsets import ClockOffsets, RunClock, ahead_of
from linklogs.replay.codes import MOVED, Numbers
from linklogs.replay.files import ReplayFile

SMALL_BYTES: Final = 64 << 10

COLUMNS: Final = (
    "kind",
    "event",
    "at_us",
    "run",
    "incoming",
    "outgoing",
    "outcome",
    "part",
    "count",
    "size_bytes",
    "took_us",
    "queue",
)
"""The columns that are read of movements."""
COUNTED: Final = ("kind", "at_us", "run")
"""The columns that are read of nodes outside of the request: enough to count the records of runs by time."""


class FileSlice(NamedTuple):
    """Movements from a part of one file.

    ``ahead_us``: how far the node's clock was ahead, as one number for all records or an array with one for each.
    """

    node: str
    table: pyarrow.Table
    ahead_us: Numbers | int


def pieces(
    file: ReplayFile, clocks: Mapping[int, RunClock], span: TimeSpan = ALWAYS, columns: Sequence[str] = COLUMNS
) -> Iterator[FileSlice]:
    """Yield the movements of a file, piece by piece; ``clocks`` has the clock of each run of the node.

    Records outside of ``span`` may be left out. Raises ArrowException or OSError for a damaged file.
    """
    ahead = ahead_of(file, MOVED, clocks)
    # If a clock is off, all records are read: the statistics of row groups have wrong times, too, and a step of the
    # clock shows only in the order of all records.
    for table in file.pieces(MOVED, columns, ALWAYS if clocks else span):
        yield FileSlice(file.node, table, ahead.of(table))


def packed(found: Sequence[FileSlice]) -> Iterator[tuple[str, bytes]]:
    """Yield, for successive slices of a node, the node and their movements in Arrow's stream format, for `unpacked`.

    Callers correct the times for steps of clocks before.
    """
    for node, own in groupby(found, key=lambda piece: piece.node):
        table = _table(list(own)).combine_chunks()
        sink = pyarrow.BufferOutputStream()
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with pyarrow.ipc.new_stream(sink, table.schema, options=options) as stream:
            stream.write_table(table)
        yield node, sink.getvalue().to_pybytes()


def unpacked(node: str, octets: pyarrow.Buffer, clocks: Mapping[int, RunClock]) -> FileSlice:
    """Decode movements that `packed` encoded, with the clock offsets at the ends of runs from ``clocks``.

    Steps of a clock within a run were subtracted before `packed`.
    """
    table = pyarrow.ipc.open_stream(octets).read_all()
    return FileSlice(node, table, ClockOffsets({run: clock.ahead_us for run, clock in clocks.items()}).of(table))


def joined(found: Sequence[FileSlice]) -> Iterator[FileSlice]:
    """Join successive pieces of a node into one, because a pass over a small table takes as long as over a large
    one.
    """
    for node, own in groupby(found, key=lambda piece: piece.node):
        beside = list(own)
        ahead_us = [piece.ahead_us for piece in beside]
        if all(isinstance(each, int) and each == ahead_us[0] for each in ahead_us):
            yield FileSlice(node, _table(beside), ahead_us[0])
        else:
            of_each = [numpy.broadcast_to(piece.ahead_us, len(piece.table)) for piece in beside]
            yield FileSlice(node, _table(beside), numpy.concatenate(of_each))


def _table(found: Sequence[FileSlice]) -> pyarrow.Table:
    return pyarrow.concat_tables([piece.table for piece in found], promote_options="default")

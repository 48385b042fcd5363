"""Movements as tables: the pass over state records opens small files once, and hands their movements on.

Opening a small file takes as long as reading all of it. Large files are read once more, and never kept in memory.
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
"""Columns of movements."""
COUNTED: Final = ("kind", "at_us", "run")
"""Columns for nodes that do not concern the request: enough to count the records of runs by time."""


class FileSlice(NamedTuple):
    """``ahead_us``: how far the clock was ahead, always or at each record."""

    node: str
    table: pyarrow.Table
    ahead_us: Numbers | int


def pieces(
    file: ReplayFile, clocks: Mapping[int, RunClock], span: TimeSpan = ALWAYS, columns: Sequence[str] = COLUMNS
) -> Iterator[FileSlice]:
    """``clocks``: by run of the node; ``span``: records outside may be left out.

    Raises ArrowException or OSError for damage.
    """
    ahead = ahead_of(file, MOVED, clocks)
    # If a clock is off, statistics of row groups are off too, and a step shows only in the order of all records.
    for table in file.pieces(MOVED, columns, ALWAYS if clocks else span):
        yield FileSlice(file.node, table, ahead.of(table))


def packed(found: Sequence[FileSlice]) -> Iterator[tuple[str, bytes]]:
    """Movements of each node, in Arrow's file format, with clock offsets subtracted."""
    for node, own in groupby(found, key=lambda piece: piece.node):
        table = _table(list(own)).combine_chunks()
        sink = pyarrow.BufferOutputStream()
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with pyarrow.ipc.new_stream(sink, table.schema, options=options) as stream:
            stream.write_table(table)
        yield node, sink.getvalue().to_pybytes()


def unpacked(node: str, octets: pyarrow.Buffer, clocks: Mapping[int, RunClock]) -> FileSlice:
    """The opposite of `packed`, with the final offsets of ``clocks`` subtracted: `packed` subtracted earlier steps."""
    table = pyarrow.ipc.open_stream(octets).read_all()
    return FileSlice(node, table, ClockOffsets({run: clock.ahead_us for run, clock in clocks.items()}).of(table))


def joined(found: Sequence[FileSlice]) -> Iterator[FileSlice]:
    """One piece for each node: a small table takes as long as a large one."""
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

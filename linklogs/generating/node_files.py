"""Writes the generated Parquet files of one run of a node; each begins with a snapshot, as files of the writer of link
logs do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy
import pyarrow
from pyarrow import parquet

from linklogs.file_names import UNREAD, directory_of, file_name, hour_of
from linklogs.generating.batches import DELIVERIES, MOVES, Batches, Columns, Depths
from linklogs.generating.plan import Array, LogPlan, PlannedRun
from linklogs.parquet import SCHEMA, TEXT, batch_of_rows, metadata, open_writer, same
from recording.columns import RecordEvent, RecordKind

MOST_RECORDS = 16 * 1024 * 1024 // 32
"""The greatest number of records in a file: the number of 32-byte slots in 16 MiB."""

_WITH_TEXT: Final = pyarrow.schema(
    [(field.name, pyarrow.string() if field.type == TEXT else field.type) for field in SCHEMA]
)


class NodeFileWriter:
    """Writes the link-log files of one run of a node, from records added slice by slice in time.

    At most ``group`` movements wait in memory before they are written as a row group. Times are passed in by a correct
    clock; the errors of the node's clock are added when records are written.
    """

    def __init__(self, plan: LogPlan, place: int, out: Path, batches: Batches, group: int) -> None:
        self._life: PlannedRun = plan.lives[place]
        self._file_us = plan.file_us
        self._mesh = plan.mesh
        self._out = out
        self._batches = batches
        self._group = group
        self._queues = plan.queues.of_life(place)
        self._rows_us = self._life.rows.column("at_us").to_numpy()
        self._waiting: list[Columns] = []
        self._told: list[pyarrow.RecordBatch] = []
        self._depths: list[Depths] = []
        self._missed: list[tuple[Array, Array, Array]] = []
        self._writer: parquet.ParquetWriter | None = None
        self._path = Path()
        self._begun_us = 0
        self._in_file = 0
        self.records = 0
        self.lost = 0
        self._reported_lost = 0

    @property
    def run_us(self) -> int:
        return self._life.begins_us + self._life.skew_us

    def by_its_clock(self, at_us: Array) -> Array:
        return at_us + self._life.ahead_us(at_us)

    def _clock_us(self, at_us: int) -> int:
        return int(self.by_its_clock(numpy.array(at_us)))

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def begin(self, at_us: int, depths: Array) -> None:
        """Begin a slice of time at ``at_us``; close the present file and open another one if the file spans
        ``plan.file_us``, or its hour is over.

        ``depths``: messages, bytes and age of the oldest message of every queue at this time, for the snapshot of a new
        file.
        """
        at_us = max(at_us, self._life.begins_us, self._begun_us)
        if self._writer is not None and self._is_old(at_us):
            self.close(at_us)
        if self._writer is None:
            self._open(at_us, depths)

    def is_idle(self, from_us: int, to_us: int) -> bool:
        """Tell whether the plan has no state records of this run from ``from_us`` to ``to_us``."""
        first, last = numpy.searchsorted(self._rows_us, [from_us, to_us])
        return bool(first == last)

    def add(self, made: Columns, depths: Array) -> None:
        kept = self._kept(made)
        while len(kept):
            room = min(self._group, MOST_RECORDS - self._in_file) - sum(map(len, self._waiting))
            self._waiting.append(kept.part(0, room))
            kept = kept.part(room, len(kept))
            if sum(map(len, self._waiting)) >= min(self._group, MOST_RECORDS - self._in_file):
                self._write()
            if self._in_file >= MOST_RECORDS and len(kept):
                at_us = int(kept.records.at_us[0])
                self.close(at_us)
                self._open(at_us, depths)

    def add_depths(self, at_us: Array, depths: Array) -> None:
        """Add samples of depth for the run's own queues: the first of this call, and each with another count of
        messages than the sample before.

        ``depths`` has three planes (messages, bytes, age of the oldest in us), each with a row per queue and a column
        per time.
        """
        is_there = (at_us >= self._life.begins_us) & (at_us < self._life.ends_us)
        at_us, depths = at_us[is_there], depths[:, :, is_there]
        for queue in self._queues:
            columns = depths[:, queue]
            is_new = numpy.ones(len(at_us), bool)
            is_new[1:] = columns[0, 1:] != columns[0, :-1]
            places = numpy.full(int(is_new.sum()), queue)
            self._depths.append(Depths(places, at_us[is_new], *columns[:, is_new]))

    def add_missed(self, link: Array, at_us: Array, count: Array) -> None:
        """Add counts of copies that links did not send for want of credit, with the times of their records."""
        self._missed.append((link, at_us, count))

    def close(self, at_us: int) -> None:
        """Close the file, if one is open, after writing the waiting records and the run's state records before
        ``at_us``.
        """
        if self._writer is None:
            return
        self._write()
        self._tell(self._rows(self._begun_us, at_us))
        if self._depths:
            self._told.append(self._batches.depths(self, Depths.joined(self._depths), RecordEvent.CHANGED))
            self._depths.clear()
        self._told += [self._batches.missed(self, *each) for each in self._missed]
        self._missed.clear()
        self._report_lost(at_us)
        self._write_told()
        self._writer.close()
        self._writer = None
        os.replace(self._path.with_name(UNREAD + self._path.name), self._path)

    def _is_old(self, at_us: int) -> bool:
        if at_us - self._begun_us >= self._file_us:
            return True
        return hour_of(self._clock_us(at_us)) != hour_of(self._clock_us(self._begun_us))

    def _open(self, at_us: int, depths: Array) -> None:
        folder = directory_of(self._out, self._life.node, self._clock_us(at_us))
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / file_name(self.run_us, self.records)
        # A name that begins with an underscore is ignored by Spark until the finished file is renamed.
        sink = self._path.with_name(UNREAD + self._path.name)
        self._writer = open_writer(sink, metadata(self._life.node, self.run_us, self._mesh))
        self._begun_us, self._in_file = at_us, 0
        self._snapshot(at_us, depths)

    def _snapshot(self, at_us: int, depths: Array) -> None:
        self._told.append(batch_of_rows([self._itself(at_us)]))
        is_live = (self._rows_us < at_us) & (self._life.until_us > at_us)
        live = self._life.rows.take(pyarrow.array(numpy.flatnonzero(is_live)))
        self._tell(_replaced(live, event=RecordEvent.LIVE, at_us=at_us))
        if len(self._queues):
            now = numpy.full(len(self._queues), at_us)
            found = Depths(self._queues, now, *depths[:, self._queues])
            self._told.append(self._batches.depths(self, found, RecordEvent.LIVE))
        self._write_told()

    def _itself(self, at_us: int) -> dict[str, str | int | None]:
        life, clock_us = self._life, self._clock_us(at_us)
        return {
            "kind": RecordKind.NODE,
            "event": RecordEvent.LIVE,
            "at_us": clock_us,
            "run": self.run_us,
            "role": life.role,
            "count": self.lost,
            "clock_us": life.clock_us + clock_us - at_us - life.skew_us,
            "topology": life.topology,
            "version": life.version,
        }

    def _rows(self, from_us: int, to_us: int) -> pyarrow.RecordBatch:
        first, last = numpy.searchsorted(self._rows_us, [from_us, to_us])
        return self._life.rows.slice(first, last - first)

    def _tell(self, rows: pyarrow.RecordBatch) -> None:
        at_us = pyarrow.array(self.by_its_clock(rows.column("at_us").to_numpy()))
        run = pyarrow.array(numpy.full(len(rows), self.run_us))
        self._told.append(rows.set_column(2, "at_us", at_us).set_column(3, "run", run))

    def _write(self) -> None:
        """Write all waiting movements: one row group of deliveries and one of queue events, without an empty one."""
        assert self._writer is not None or not self._waiting
        for kind in (DELIVERIES, MOVES):
            parts = [each for each in self._waiting if each.kind == kind]
            if parts and self._writer is not None:
                columns = Columns.joined(parts)
                self._writer.write_batch(self._batches.records(self, columns))
                self._in_file += len(columns)
                self.records += len(columns)
        self._waiting.clear()

    def _write_told(self) -> None:
        """Write the collected state records as one row group, or nothing if there are none."""
        told = _as_one(self._told)
        if len(told) and self._writer is not None:
            self._writer.write_table(told)
        self._told.clear()

    def _kept(self, made: Columns) -> Columns:
        """Remove the records of times in which the plan says that the node had no room in its ring, and count them as
        lost.
        """
        for from_us, to_us in self._life.lost:
            is_lost = (made.records.at_us >= from_us) & (made.records.at_us < to_us)
            if is_lost.any():
                self.lost += int(is_lost.sum())
                made = made.take(numpy.flatnonzero(~is_lost))
        return made

    def _report_lost(self, at_us: int) -> None:
        if self.lost > self._reported_lost and self._writer is not None:
            row = {**self._itself(at_us), "event": RecordEvent.LOST, "count": self.lost - self._reported_lost}
            self._told.append(batch_of_rows([row]))
            self._reported_lost = self.lost


def _as_one(batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.Table:
    """Join batches into one table whose dictionaries hold only the words in use, not all words of the node's run."""
    return pyarrow.Table.from_batches(batches, SCHEMA).cast(_WITH_TEXT).combine_chunks().cast(SCHEMA)


def _replaced(rows: pyarrow.RecordBatch, *, event: str, at_us: int) -> pyarrow.RecordBatch:
    """Return state records as records of a snapshot: with ``event`` and ``at_us``, and with null in place of the time
    without credit.
    """
    count, names = len(rows), SCHEMA.names
    rows = rows.set_column(names.index("event"), SCHEMA.field("event"), same(event, count))
    rows = rows.set_column(names.index("at_us"), "at_us", pyarrow.array(numpy.full(count, at_us)))
    return rows.set_column(names.index("starved_us"), "starved_us", pyarrow.nulls(count, pyarrow.int64()))

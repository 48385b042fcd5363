"""Sums up the files that were read: runs of nodes, counts of records, times, and files left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay.codes import END_US
from linklogs.replay.state_rows import BETWEEN, FILE
from linklogs.replay.steps import RunClockReading
from recording.columns import RecordEvent, RecordKind


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Facts about all files that were read for a report.

    ``runs``: (node, run) of each run. ``nodes``: all nodes with files. ``first_us``, ``last_us``: times of the first
    and last record, None if no file has times. ``notices``: a sentence for each unreadable file. ``replaced``: paths of
    files whose records are all in merged files. ``readings``: the readings of each run's clock.
    """

    runs: tuple[tuple[str, int], ...]
    nodes: tuple[str, ...]
    records: int
    size_bytes: int
    first_us: int | None
    last_us: int | None
    notices: tuple[str, ...]
    replaced: frozenset[str]
    readings: Mapping[tuple[str, int], tuple[RunClockReading, ...]]

    @classmethod
    def of(cls, rows: DataFrame) -> ReadSummary:
        """Make the summary from the rows that `StateRows` made."""
        is_file = F.col("kind") == FILE
        by_run = rows.groupBy("node", "run").agg(
            F.sum(F.when(is_file, F.col("count"))).alias("records"),
            F.sum(F.when(is_file, F.col("size_bytes"))).alias("size_bytes"),
            F.min(F.when(is_file, F.col("at_us"))).alias("first_us"),
            F.max(F.when(is_file, F.col("last_us"))).alias("last_us"),
            F.collect_set("notice").alias("notices"),
            F.collect_set("replaces").alias("replaces"),
            F.collect_set(_reading()).alias("readings"),
        )
        found = by_run.collect()
        return cls(
            tuple(sorted((row.node, row.run) for row in found if row.run is not None)),
            tuple(sorted({row.node for row in found})),
            sum(row.records or 0 for row in found),
            sum(row.size_bytes or 0 for row in found),
            min((row.first_us for row in found if row.first_us is not None), default=None),
            max((row.last_us for row in found if row.last_us is not None), default=None),
            tuple(sorted(notice for row in found for notice in row.notices)),
            frozenset(path for row in found for each in row.replaces for path in each.split(BETWEEN)),
            {
                (row.node, row.run): tuple(RunClockReading(*each) for each in row.readings)
                for row in found
                if row.run is not None and row.readings
            },
        )

    def span(self, asked: TimeSpan) -> TimeSpan:
        """Return the part of the requested time (``asked``) from the first record to the last.

        If no file has times, return the requested time itself.
        """
        if self.first_us is None or self.last_us is None:
            return asked
        return TimeSpan(self.first_us, self.last_us).within(asked)


def _reading() -> Column:
    """Return the reading of a node's clock in a record; null for a record without a reading."""
    is_reading = (F.col("kind") == RecordKind.NODE.value) & F.col("at_us").between(0, END_US - 1)
    is_change = F.coalesce(F.col("event") == RecordEvent.CHANGED.value, F.lit(False))
    can_be = F.col("clock_us").between(1 - END_US, END_US - 1)
    return F.when(is_reading & can_be, F.struct("at_us", "clock_us", is_change.alias("is_change")))

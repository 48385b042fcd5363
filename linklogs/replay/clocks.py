"""Finds the differences between the clocks of nodes from events that two nodes recorded, and subtracts them from times.

A link between two nodes has the same name at both ends, and is attached within a round trip at both. A link begun by
one end is seen a little later at the other; as links are begun from both ends, half of the error goes away, and the
rest is a few ms. Offsets of at most SMALL_US are not corrected: no window is so short that such offsets matter. Without
links, neighbors that came and went give the difference: linklogs/replay/ties.py. A run with neither links nor neighbors
is assumed to have the clock of the node's run before. All times here are already corrected for steps of a clock within
a run: linklogs/replay/steps.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.replay.clock_offsets import RunClock
from linklogs.replay.steps import ClockSteps
from linklogs.replay.ties import NEAR_US, ClockDifference, ClockTies, NeighborChange, Run, seen_differences
from recording.columns import RecordEvent, RecordKind

SMALL_US: Final = 50_000
MOST_SAMPLES: Final = 20_000
OF_CLIENTS: Final = ("producer", "consumer")
"""Roles of clients' links, which give no difference between clocks."""
COLUMNS: Final = pa.schema(
    [
        ("node", pa.string()),
        ("run", pa.int64()),
        ("at_us", pa.int64()),
        ("set_by_us", pa.int64()),
        ("ahead_us", pa.int64()),
    ]
)
_NEVER: Final = ClockSteps((), {})


class OffsetSince(NamedTuple):
    """A row of the table of clocks: from ``at_us`` on, the node's clock was ahead by ``ahead_us``.

    ``at_us`` is None for an offset since the node's first record. ``set_by_us``: the change, if the clock was set while
    the node ran; None if the offset differs from the run before without a record of the change.
    """

    node: str
    run: int
    at_us: int | None
    set_by_us: int | None
    ahead_us: int


def ahead_us(said: DataFrame, runs: Sequence[Run], steps: Mapping[Run, ClockSteps]) -> dict[Run, int]:
    """Return how far the clock of each run was ahead of the middle one of the clocks compared, at the end of the run.

    A clock that was behind has a negative value. Runs whose clock was off by at most SMALL_US are left out.
    """
    ties = ClockTies()
    ties.add(_of_links(said))
    # Records of neighbors are read only if links do not tie the clocks of all runs together, as they mostly do.
    if not ties.are_one(runs):
        ties.add(seen_differences(_seen(said)))
        ties.add(_going_on(runs, steps))
    return {run: ahead for run, ahead in ties.ahead_us().items() if abs(ahead) > SMALL_US}


def corrected(records: DataFrame, ahead_us: Mapping[Run, int]) -> DataFrame:
    """Return the records with the clock offset of each record's run subtracted from ``at_us``."""
    if not ahead_us:
        return records
    pairs = [F.lit(value) for (node, run), ahead in ahead_us.items() for value in (f"{run} {node}", ahead)]
    ahead = F.coalesce(F.create_map(*pairs)[F.concat_ws(" ", "run", "node")], F.lit(0))
    return records.withColumn("at_us", F.col("at_us") - ahead)


def by_node(steps: Mapping[Run, ClockSteps], ahead_us: Mapping[Run, int]) -> dict[str, dict[int, RunClock]]:
    """Return, by node and run, the clocks that were set during the run or are off by more than SMALL_US."""
    found: dict[str, dict[int, RunClock]] = {}
    for node, run in {*steps, *ahead_us}:
        was_us = steps.get((node, run), _NEVER).ahead_us
        found.setdefault(node, {})[run] = RunClock(ahead_us.get((node, run), 0), was_us)
    return found


def history(runs: Sequence[Run], steps: Mapping[Run, ClockSteps], ahead_us: Mapping[Run, int]) -> Iterator[OffsetSince]:
    """Yield a row of the table of clocks for each change of a clock's offset, in the order of nodes and runs.

    Between runs of a node, and for a node's first run, only an offset that differs by more than SMALL_US is yielded.
    """
    before: tuple[str, int] = ("", 0)
    for node, run in sorted(runs):
        set_after, last_us = steps.get((node, run), _NEVER), ahead_us.get((node, run), 0)
        now_us = last_us + set_after.first_us
        is_first = before[0] != node
        if abs(now_us - (0 if is_first else before[1])) > SMALL_US:
            yield OffsetSince(node, run, None if is_first else run - now_us, None, now_us)
        for step in set_after.steps:
            now_us += step.by_us
            yield OffsetSince(node, run, step.at_us - last_us, step.by_us, now_us)
        before = node, now_us


def table(spark: SparkSession, rows: Sequence[OffsetSince]) -> DataFrame:
    """Return the report's table `clocks`, which shows the clock offsets that were corrected."""
    columns = [[row[place] for row in rows] for place in range(len(COLUMNS))]
    # The DataFrame is made from an Arrow table: for a list of rows, Spark would start a Python process on a worker.
    return spark.createDataFrame(pa.table(columns, schema=COLUMNS))


def _of_links(said: DataFrame) -> list[ClockDifference]:
    """Return the median difference between the clocks of each pair of runs, from a sample of links between nodes.

    Pairs are left out whose links do not agree.
    """
    is_event = F.col("event").isin(RecordEvent.OPENED.value, RecordEvent.CLOSED.value)
    # Links of clients are left out: a client may attach a link of the same name again, at another node, at any time.
    is_between_nodes = ~F.col("role").isin(*OF_CLIENTS)
    told = said.where(
        (F.col("kind") == RecordKind.LINK.value) & is_event & F.col("name").isNotNull() & is_between_nodes
    )
    end = F.struct("node", "run", "at_us")
    ends = told.groupBy("name", "event").agg(
        F.min_by(end, "node").alias("one"), F.max_by(end, "node").alias("other"), F.count("*").alias("times")
    )
    both = ends.where((F.col("times") == 2) & (F.col("one.node") != F.col("other.node"))).limit(MOST_SAMPLES)
    differences = F.percentile(F.col("other.at_us") - F.col("one.at_us"), F.array(*map(F.lit, (0.25, 0.5, 0.75))))
    by_pair = both.groupBy(F.struct("one.node", "one.run"), F.struct("other.node", "other.run")).agg(
        differences, F.count("*")
    )
    # If the middle half of a pair's differences spans more than NEAR_US, no clock is the cause: the pair is left out.
    return [
        ClockDifference(tuple(one), tuple(other), middle, samples)
        for one, other, (low, middle, high), samples in by_pair.collect()
        if high - low <= NEAR_US
    ]


def _seen(said: DataFrame) -> list[NeighborChange]:
    is_event = F.col("event").isin(RecordEvent.OPENED.value, RecordEvent.CLOSED.value)
    told = said.where((F.col("kind") == RecordKind.NEIGHBOR.value) & is_event & F.col("neighbor").isNotNull())
    return [NeighborChange(*row) for row in told.select(*NeighborChange._fields).limit(MOST_SAMPLES).collect()]


def _going_on(runs: Sequence[Run], steps: Mapping[Run, ClockSteps]) -> Iterator[ClockDifference]:
    """Yield the difference between the clocks of each run and the node's next run, as both are at the runs' ends.

    The host's clock goes on while the node is down: the difference is 0 until the next run begins, and then changes by
    the steps of this run's clock.
    """
    for before, after in pairwise(sorted(runs)):
        if before[0] == after[0]:
            yield ClockDifference(before, after, -steps.get(after, _NEVER).first_us, 1)

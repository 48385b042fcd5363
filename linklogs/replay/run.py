"""Makes all tables of a report from a Spark session and parameters: shared data at once, each table on demand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import pyarrow
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from addressing.address import Address
from linklogs.input_logs import InputLogs, files, foreign
from linklogs.log_search import NoLogs
from linklogs.moments import TimeSpan
from linklogs.replay import clocks, queues
from linklogs.replay.aggregation import Aggregation
from linklogs.replay.codes import END_US
from linklogs.replay.column_expressions import US_PER_S
from linklogs.replay.entities import links, nodes
from linklogs.replay.facts import Facts, known
from linklogs.replay.file_slices import SMALL_BYTES
from linklogs.replay.files import DAMAGED, FILE_COLUMNS
from linklogs.replay.levels import NOTICE, TIME, WHOLE, TotalLevels, WindowLevels
from linklogs.replay.presence import marked
from linklogs.replay.read_summary import ReadSummary
from linklogs.replay.report_tables import ReportTime, TableSources
from linklogs.replay.rows import ROWS
from linklogs.replay.state_rows import CARRIED, FILE, TELLING, StateRows
from linklogs.replay.steps import ClockSteps, steps_of
from linklogs.replay.sums import PACKED
from linklogs.replay.ties import Run
from linklogs.replay.traffic import BY_WINDOW
from linklogs.replay.windows import widened

MOST_NEAR = 3
RECORDS_OF_A_PART = 4_000_000
LINKS = "links"
CREDIT = "credit"
"""The name under which the width of windows in tables of credit is listed; the width is that of LINKS."""


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of a report.

    ``window_us``: width of a window in us, above 0. ``address``: a pattern of addresses to which the report is cut;
    None for all.
    """

    logs: InputLogs
    window_us: int
    address: str | None = None
    cheapest: DataFrame | None = None
    """Cheapest paths, with columns node, egress, cheapest and cheapest_cost; None for those that routers recorded."""


@dataclass(slots=True)
class Tables:
    """The tables of a report, by name; `release` frees the memory of the data that tables share."""

    by_name: Mapping[str, DataFrame]
    time: ReportTime
    windows_us: Mapping[str, int]
    """Width of windows at each level: wider than requested if the table would be too long for anybody to read."""
    read: ReadSummary
    near: tuple[str, ...]
    """The most similar addresses, if no address matches the requested pattern."""
    kept: list[DataFrame] = field(default_factory=list)

    def wider_us(self, asked_us: int) -> dict[str, int]:
        """Return, by name, the width of windows in us of each table whose windows are wider than requested."""
        return {name + BY_WINDOW: each for name, each in self.windows_us.items() if each > asked_us}

    def release(self) -> None:
        for each in self.kept:
            each.unpersist()


def run(spark: SparkSession, params: Params) -> Tables:
    """Read the link logs, and plan all tables of the report. Raise NoLogs if no file can be read."""
    of_files, rows, read, steps = _read(files(spark, params.logs), params.logs.span)
    if not read.records and read.notices:
        first_reason = f"the first of {len(read.notices):,} reasons: {read.notices[0]}"
        raise NoLogs(f"no link log in {params.logs.path} can be read; {first_reason}")
    told = rows.where(~F.col("kind").isin(FILE, CARRIED) & F.col("run").isNotNull() & _is_in_time()).drop("moved")
    ahead_us = clocks.ahead_us(told, read.runs, steps)
    said = clocks.corrected(told, ahead_us)
    of_links, of_nodes = _kept(marked(links(said), said, params.logs.span)), nodes(said)
    wanted = known(of_links, of_nodes, params.address).toArrow()
    facts = Facts.of(wanted, read.runs, read.nodes, is_cut=params.address is not None)
    windows_us = widened(facts, read.span(params.logs.span).length_us, params.window_us)
    parts, widest_us, off = _parts(spark, read), max(windows_us.values()), clocks.by_node(steps, ahead_us)
    nodes_asked = _nodes(said, wanted, params.address)
    adding = Aggregation(params.window_us, widest_us, parts, params.logs.span, facts.by_node(), off, nodes_asked)
    over_time = _kept(_over_time(_moved(of_files, rows), adding, WindowLevels(facts, windows_us)))
    time, notices = _time_and_notices(over_time, params.window_us, params.logs.span, read)
    read = replace(read, notices=_all_of((*read.notices, *foreign(spark, params.logs)), notices))
    whole = over_time.where(F.col("level") == WHOLE).select("sums").coalesce(1)
    in_all = _kept(whole.mapInArrow(TotalLevels(facts, time.seconds).__call__, ROWS))
    asked = params.address, params.logs.span, params.window_us, windows_us[LINKS]
    off_us = max(map(abs, ahead_us.values()), default=0)
    shared = TableSources(said, over_time, in_all, of_links, of_nodes, *asked, time, off_us, params.cheapest)
    since = list(clocks.history(read.runs, steps, ahead_us))
    planned = shared.planned(clocks=lambda: clocks.table(spark, since))
    near = _near(params.address, facts) if params.address is not None else ()
    shown_us = {**windows_us, CREDIT: windows_us[LINKS]}
    return Tables(planned, time, shown_us, read, near, [rows, of_links, over_time, in_all])


def _nodes(said: DataFrame, links: pyarrow.Table, address: str | None) -> frozenset[str] | None:
    """Return the nodes with a link or a queue whose address matches the pattern; None, for all nodes, without a
    pattern.
    """
    if address is None:
        return None
    of_links = links.filter(links["is_wanted"])["node"].to_pylist()
    of_queues = queues.things(said, address).select("node").distinct().collect()
    return frozenset((*of_links, *(row.node for row in of_queues)))


def _near(pattern: str, facts: Facts) -> tuple[str, ...]:
    if facts.is_wanted.any():
        return ()
    named = sorted({word for word in facts.addresses.words if word and not Address.parse(word).is_internal})
    return tuple(get_close_matches(pattern, named, MOST_NEAR, cutoff=0.0))


def _is_in_time() -> Column:
    """Return the condition that a record has a time from 1970 to END_US, in the year 2255."""
    return F.col("at_us").between(0, END_US - 1)


def _time_and_notices(
    over_time: DataFrame, window_us: int, span: TimeSpan, read: ReadSummary
) -> tuple[ReportTime, list[str]]:
    """Return the report's time, and notices of unreadable files.

    The time is from the first window with traffic to the last, cut to the requested span.
    """
    notice = F.when(F.col("level") == NOTICE, F.col("what"))
    rows = over_time.where(F.col("level").isin(TIME, NOTICE))
    [(first, last, notices)] = rows.agg(F.min("window"), F.max("other"), F.collect_set(notice)).collect()
    if first is None:
        return ReportTime(None, None, window_us / US_PER_S, read.span(span)), notices
    from_us = first if span.from_us is None else max(first, span.from_us)
    to_us = last + window_us if span.to_us is None else min(last + window_us, span.to_us)
    return ReportTime(from_us, to_us, (to_us - from_us) / US_PER_S, read.span(span)), notices


def _all_of(before: Sequence[str], later: Sequence[str]) -> tuple[str, ...]:
    """Join notices from two passes over the files; a damaged file that both passes met keeps its earlier notice."""
    known = {notice.partition(f" {DAMAGED}")[0] for notice in before}
    return tuple(sorted({*before, *(each for each in later if each.partition(f" {DAMAGED}")[0] not in known)}))


def _read(of_files: DataFrame, span: TimeSpan) -> tuple[DataFrame, DataFrame, ReadSummary, dict[Run, ClockSteps]]:
    """Read the state records: return the live files, the rows, a summary of the files, and the steps of clocks that
    were set.

    All is read twice if a merge replaced files that are not deleted yet, since only the merged files name them, and if
    a clock was set, since only the order within a file shows on which side of the step a record lies.
    """
    rows = _kept(of_files.mapInArrow(StateRows(span).__call__, TELLING))
    read = ReadSummary.of(rows)
    found = ((run, steps_of(readings)) for run, readings in read.readings.items())
    steps = {run: each for run, each in found if each.steps}
    replaced = read.replaced.intersection(_paths(of_files)) if read.replaced else frozenset[str]()
    if not replaced and not steps:
        return of_files, rows, read, steps
    rows.unpersist()
    live = _without(of_files, replaced) if replaced else of_files
    told = _kept(live.mapInArrow(StateRows(span, clocks.by_node(steps, {})).__call__, TELLING))
    return live, told, ReadSummary.of(told), steps


def _paths(of_files: DataFrame) -> list[str]:
    return [row.path for row in of_files.select("path").collect()]


def _without(of_files: DataFrame, paths: Collection[str]) -> DataFrame:
    """Return the table of files without the files at ``paths``.

    A join leaves them out, since an expression with thousands of names takes Spark seconds.
    """
    named = of_files.sparkSession.createDataFrame(pyarrow.table({"path": sorted(paths)}))
    return of_files.join(F.broadcast(named), "path", "left_anti")


def _parts(spark: SparkSession, read: ReadSummary) -> int:
    """Return the number of partitions over which windows are distributed, each for one worker."""
    return max(spark.sparkContext.defaultParallelism, read.records // RECORDS_OF_A_PART)


def _moved(of_files: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the input of `Aggregation`: movements of small files, from ``rows``, and the names of the large files.

    The large files are still to be read.
    """
    none = [F.lit(None).cast(kind).alias(name) for name, kind in of_files.select(*FILE_COLUMNS).dtypes]
    carried = rows.where(F.col("kind") == CARRIED).select("moved", "node", *none[1:])
    large = of_files.where(F.col("size_bytes") > SMALL_BYTES)
    return carried.union(large.select(F.lit(None).cast("binary").alias("moved"), *FILE_COLUMNS))


def _over_time(files: DataFrame, adding: Aggregation, over_time: WindowLevels) -> DataFrame:
    sums = files.mapInArrow(adding.__call__, PACKED)
    return sums.repartitionById(adding.parts, "part").mapInArrow(over_time.__call__, ROWS)


def _kept(table: DataFrame) -> DataFrame:
    return table.persist(StorageLevel.MEMORY_AND_DISK)

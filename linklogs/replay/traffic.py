"""Makes the tables of traffic from the rows of the passes over records, with facts about links and connections."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linklogs.replay.entities import CONNECTION_FACTS, LINK_FACTS
from linklogs.replay.levels import FLOWS, LATENCY, LEVELS, AggregationLevel
from linklogs.replay.measures import MEASURES
from linklogs.replay.presence import WAS_THERE

BY_WINDOW = "_by_window"
TIMES = ("opened_us", "closed_us", "cause")
_LEVELS = {level.name: level for level in LEVELS}
SHOWN = ("opened_us", "closed_us", "at_us", "first_us", "last_us", "since_us", "until_us")


def in_all(rows: DataFrame, level: AggregationLevel) -> DataFrame:
    return _of(rows, level).select(*level.names, *MEASURES)


def by_window(rows: DataFrame, level: AggregationLevel) -> DataFrame:
    """Return the table of an aggregation level by window; column `window` has the beginning of the window."""
    return _of(rows, level).select(F.timestamp_micros("window").alias("window"), *level.names, *MEASURES)


def links(rows: DataFrame, of_links: DataFrame) -> DataFrame:
    """Return the totals of links with their facts, including idle links that existed in the time of the report."""
    return _described(rows, "links", ("node", "run", "link"), of_links, LINK_FACTS)


def connections(rows: DataFrame, of_connections: DataFrame) -> DataFrame:
    """Return the totals of connections with their facts, including idle connections that existed in the time of the
    report.
    """
    return _described(rows, "connections", ("node", "run", "connection"), of_connections, CONNECTION_FACTS)


def moved(rows: DataFrame) -> DataFrame:
    """Return the totals of each link; ``peer`` is set for links at the edge of the mesh."""
    of_links = rows.where(F.col("level") == "links")
    return of_links.select("node", "run", "link", "side", "peer", "messages", "size_bytes")


def flows(rows: DataFrame) -> DataFrame:
    """Return the sums of each link or queue by side (SIDES in linklogs/replay/codes.py) and by outcome or event."""
    names = ("window", "node", "run", "side", "link", "other", "what", "messages", "size_bytes", "max_us")
    return rows.where(F.col("level") == FLOWS).select(*names)


def latency(rows: DataFrame) -> DataFrame:
    """Return the number of messages that crossed the mesh in each bucket of latency, with the bounds of the bucket."""
    found = rows.where(F.col("level") == LATENCY)
    return found.select("side", "peer", "bucket", "messages", "least_us", "largest_us").orderBy("bucket")


def times(table: DataFrame) -> DataFrame:
    """Replace columns of times in us by columns of timestamps:

    `opened_us` becomes `opened_at`, and `at_us` becomes `at`.
    """
    for name in [name for name in table.columns if name in SHOWN]:
        shown = "at" if name == "at_us" else f"{name[:-3]}_at"
        table = table.withColumn(name, F.timestamp_micros(name)).withColumnRenamed(name, shown)
    return table


def _described(rows: DataFrame, level: str, keys: Sequence[str], things: DataFrame, facts: Sequence[str]) -> DataFrame:
    known = things.select(*keys, *facts, *TIMES, WAS_THERE)
    joined = known.join(in_all(rows, _LEVELS[level]), list(keys), "full")
    return joined.where(F.col(WAS_THERE) | F.col("messages").isNotNull()).drop(WAS_THERE)


def _of(rows: DataFrame, level: AggregationLevel) -> DataFrame:
    return rows.where(F.col("level") == level.name)

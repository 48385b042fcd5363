"""Makes the tables of links that waited for credit, with the cause of each wait, and of drained links.

A link is starved while its sender has no credit to start a delivery. The cause says why: `no_taker`, no consumer or
broker takes messages of the address; `takers`, there are takers (consumers or brokers), but they give no credit. A
broker records `full_queue`, `disk` or `memory` instead.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay.column_expressions import US_PER_S, clipped, window
from linklogs.replay.wait_spans import NEXT_US
from recording.columns import RecordEvent, RecordKind

FACTS = ("address", "role", "direction", "container", "user")
KEYS = ("node", "run", "link", "cause")


def starved(said: DataFrame, links: DataFrame, span: TimeSpan, seconds: float) -> DataFrame:
    """Return the waits for credit in the time of the report, by link and cause.

    Column `share`: the time without credit as a share of ``seconds``, from 0 to 1.
    """
    by_link = (
        _whole(_waits(said, span))
        .groupBy(*KEYS)
        .agg(
            F.sum("starved_us").alias("starved_us"),
            F.max("starved_us").alias("longest_us"),
            F.max_by("from_us", "starved_us").alias("since_us"),
            F.count("*").alias("times"),
        )
    )
    share = F.round(F.col("starved_us") / F.lit(seconds * US_PER_S), 6)
    return _with_facts(by_link, links).withColumn("share", F.least(F.lit(1.0), share))


def starved_by_window(said: DataFrame, links: DataFrame, span: TimeSpan, window_us: int) -> DataFrame:
    """Return the time without credit by window, link and cause; a wait over several windows is divided among them."""
    wide = F.lit(window_us)
    begins = F.sequence(window(F.col("from_us"), window_us), window(F.col("until_us") - 1, window_us), wide)
    parts = _waits(said, span).withColumn("window", F.explode(begins))
    until_us = F.least("until_us", F.col("window") + wide)
    waits = _part(parts, F.greatest("from_us", "window"), until_us)
    waits = waits.withColumn("window", F.timestamp_micros("window"))
    by_link = waits.groupBy("window", *KEYS).agg(F.sum("starved_us").alias("starved_us"))
    return _with_facts(by_link, links)


def drains(said: DataFrame, links: DataFrame) -> DataFrame:
    """Return a row for each link whose receiver asked for drains: their number, and the times of the first and last."""
    told = said.where((F.col("kind") == RecordKind.CREDIT.value) & (F.col("event") == RecordEvent.DRAIN.value))
    times = F.sum("count").alias("times"), F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us")
    return _with_facts(told.groupBy("node", "run", "link").agg(*times), links)


def _waits(said: DataFrame, span: TimeSpan) -> DataFrame:
    """Return the records of waits for credit with begin and end, cut to the span.

    A row may stand for several successive records, which `joined` in linklogs/replay/wait_spans.py made one row.
    """
    told = said.where((F.col("kind") == RecordKind.CREDIT.value) & (F.col("starved_us") > 0))
    began_us = F.col("at_us") - F.greatest("took_us", "starved_us")
    lasting = told.select(*KEYS, "starved_us", began_us.alias("from_us"), F.col("at_us").alias("until_us"))
    return _part(lasting, *clipped(F.col("from_us"), F.col("until_us"), span))


def _part(waits: DataFrame, from_us: Column, until_us: Column) -> DataFrame:
    """Cut each wait to its time from ``from_us`` to ``until_us``, with a proportional part of its time without credit.

    A wait without a part in this time is dropped.
    """
    lasted_us = F.col("until_us") - F.col("from_us")
    part_us = F.round(F.col("starved_us") * ((until_us - from_us) / lasted_us)).cast("long")
    kept = waits.withColumns({"starved_us": part_us, "from_us": from_us, "until_us": until_us})
    return kept.where(F.col("until_us") > F.col("from_us"))


def _whole(waits: DataFrame) -> DataFrame:
    """Join successive waits of a link with the same cause into one row, as long as gaps are at most NEXT_US (0.1 s)."""
    in_time = Window.partitionBy(*KEYS).orderBy("until_us")
    is_next = F.col("from_us") <= F.lag("until_us").over(in_time) + NEXT_US
    begun = waits.withColumn("is_new", F.when(is_next, 0).otherwise(1))
    numbered = begun.withColumn("wait", F.sum("is_new").over(in_time))
    by_wait = numbered.groupBy(*KEYS, "wait")
    return by_wait.agg(F.sum("starved_us").alias("starved_us"), F.min("from_us").alias("from_us"))


def _with_facts(waits: DataFrame, links: DataFrame) -> DataFrame:
    facts = links.select("node", "run", "link", *FACTS)
    return waits.join(F.broadcast(facts), ["node", "run", "link"], "left")

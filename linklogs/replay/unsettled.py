"""Makes the table of links whose receivers kept deliveries without an outcome: how many, and for how long.

Nodes record the unsettled deliveries of a link once the link has stood still for STILL_S (10 s), and again when it goes
on.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay.column_expressions import US_PER_S, clipped, touches
from linklogs.replay.credit import FACTS
from linklogs.replay.endings import endings
from recording.columns import STILL_S, RecordEvent, RecordKind

KEYS = ("node", "run", "link")
IN_TIME = ("at_us", "is_news")
"""The order of records in time: a snapshot may have the same time as the file's first record, which comes later."""


def unsettled(said: DataFrame, links: DataFrame, span: TimeSpan) -> DataFrame:
    """Return, for each link with unsettled deliveries in the time of the report, their greatest number and longest
    time.

    The last count holds until the link closed, or its node stopped recording. ``said`` has the records of all time.
    """
    lasting = _clipped(_lasting(said, links), span)
    by_link = (
        _waits(lasting)
        .groupBy(*KEYS)
        .agg(
            F.max("most").alias("most_unsettled"),
            F.sum("held_us").alias("held_us"),
            F.max("held_us").alias("longest_us"),
            F.max_by("begun_us", "held_us").alias("since_us"),
            F.count("*").alias("times"),
        )
    )
    latest = F.max_by("unsettled_count", F.struct(*IN_TIME)).alias("last_unsettled")
    last = lasting.groupBy(*KEYS).agg(latest)
    return by_link.join(last, list(KEYS)).join(F.broadcast(links.select(*KEYS, *FACTS)), list(KEYS))


def _lasting(said: DataFrame, links: DataFrame) -> DataFrame:
    """Return the counts of unsettled deliveries, each with the time from and until which the count held."""
    told = said.where((F.col("kind") == RecordKind.CREDIT.value) & F.col("unsettled_count").isNotNull())
    ends = endings(said).select("node", "run", F.col("ended_us").alias("end_us"))
    of_links = told.join(F.broadcast(links.select(*KEYS, "closed_us")), list(KEYS))
    known = of_links.join(F.broadcast(ends), ["node", "run"])
    known = known.withColumn("is_news", F.col("event") != RecordEvent.LIVE.value)
    in_time = Window.partitionBy(*KEYS).orderBy(*IN_TIME)
    until_us = F.coalesce(F.lead("at_us").over(in_time), "closed_us", "end_us")
    begins = F.col("is_news") & (F.col("unsettled_count") > 0) & (F.lag("unsettled_count").over(in_time) == 0)
    from_us = F.col("at_us") - F.when(begins, STILL_S * US_PER_S).otherwise(0)
    return known.select(*KEYS, *IN_TIME, "unsettled_count", from_us.alias("from_us"), until_us.alias("until_us"))


def _clipped(lasting: DataFrame, span: TimeSpan) -> DataFrame:
    there = lasting.where(touches(F.col("from_us"), F.col("until_us"), span))
    from_us, until_us = clipped(F.col("from_us"), F.col("until_us"), span)
    return there.withColumn("from_us", from_us).withColumn("until_us", F.greatest(from_us, until_us))


def _waits(lasting: DataFrame) -> DataFrame:
    """Return a row for each period with unsettled deliveries, whatever the counts and however many records."""
    in_time = Window.partitionBy(*KEYS).orderBy(*IN_TIME)
    has_some = F.col("unsettled_count") > 0
    is_new = has_some & ~F.coalesce(F.lag("unsettled_count").over(in_time) > 0, F.lit(False))
    numbered = lasting.withColumn("is_new", is_new.cast("int")).withColumn("wait", F.sum("is_new").over(in_time))
    by_wait = numbered.where(has_some).groupBy(*KEYS, "wait")
    return by_wait.agg(
        F.max("unsettled_count").alias("most"),
        F.sum(F.col("until_us") - F.col("from_us")).alias("held_us"),
        F.min("from_us").alias("begun_us"),
    )

"""Tables of neighbors (routers one connection away): changes of cost and presence over time, and outages.

Each outage has the number of deliveries that failed at the router meanwhile, for whatever reason.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linklogs.replay.column_expressions import US_PER_S
from recording.columns import RecordEvent, RecordKind

PAIR = ("node", "neighbor")


def history(said: DataFrame) -> DataFrame:
    """Return each change of a neighbor's cost or presence; repeats in the snapshots of files are left out."""
    in_time = Window.partitionBy(*PAIR).orderBy("at_us")
    told = _told(said).withColumn("before", F.lag("cost").over(in_time))
    is_news = (F.col("event") != RecordEvent.LIVE.value) | F.col("before").isNull() | (F.col("before") != F.col("cost"))
    return told.where(is_news).select("at_us", *PAIR, "event", "cost", "cause")


def outages(said: DataFrame, flows: DataFrame, window_us: int) -> DataFrame:
    """Return each loss of a neighbor by a router; ``until_us`` is the time when the neighbor was back, null if never.

    Column `failed` counts the deliveries at this router that failed for whatever reason, such as released ones, in all
    windows that the outage touches.
    """
    in_time = Window.partitionBy(*PAIR).orderBy("at_us")
    told = _told(said).withColumn("until_us", F.lead("at_us").over(in_time))
    lost = told.where(F.col("event") == RecordEvent.CLOSED.value).select("at_us", "until_us", *PAIR, "cause")
    touched = lost.join(F.broadcast(_failures(flows)), _touches(window_us), "left").drop("failed_node")
    counted = touched.groupBy(*lost.columns).agg(F.coalesce(F.sum("messages"), F.lit(0)).alias("failed"))
    return counted.withColumn("lasted_s", F.round((F.col("until_us") - F.col("at_us")) / US_PER_S, 3))


def _told(said: DataFrame) -> DataFrame:
    return said.where(F.col("kind") == RecordKind.NEIGHBOR.value)


def _failures(flows: DataFrame) -> DataFrame:
    rows = flows.where(F.col("side") == "pair")
    return rows.groupBy(F.col("node").alias("failed_node"), "window").agg(F.sum("messages").alias("messages"))


def _touches(window_us: int) -> Column:
    begins_before_it_ends = F.col("until_us").isNull() | (F.col("window") < F.col("until_us"))
    return (
        (F.col("failed_node") == F.col("node")) & (F.col("window") + window_us > F.col("at_us")) & begins_before_it_ends
    )

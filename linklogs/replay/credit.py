"""For how long did links wait for credit, and for whom? Who wanted it back?

A link is starved while it may not start a delivery. The cause says who kept it waiting: `no_taker`, nobody wants the
address; `takers`, those who do give no credit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from addressing.link_log import Event, Kind
from linklogs.replay.columns import US_PER_S, window

NEXT_US = 100_000
"""A node tells once a second of a wait that goes on: what begins so soon after the one before goes on with it."""
FACTS = ("address", "role", "direction", "container", "user")


def starved(said: DataFrame, links: DataFrame, seconds: float) -> DataFrame:
    """By link and cause; ``share`` of ``seconds``."""
    by_link = (
        _whole(_waits(said))
        .groupBy("node", "run", "link", "cause")
        .agg(
            F.sum("starved_us").alias("starved_us"),
            F.max("starved_us").alias("longest_us"),
            F.max_by("from_us", "starved_us").alias("since_us"),
            F.count("*").alias("times"),
        )
    )
    share = F.round(F.col("starved_us") / F.lit(seconds * US_PER_S), 6)
    return _with_facts(by_link, links).withColumn("share", F.least(F.lit(1.0), share))


def starved_by_window(said: DataFrame, links: DataFrame, window_us: int) -> DataFrame:
    """Of the window in which the wait ended, or was last told of."""
    waits = _waits(said).withColumn("window", F.timestamp_micros(window(F.col("at_us"), window_us)))
    by_link = waits.groupBy("window", "node", "run", "link", "cause").agg(F.sum("starved_us").alias("starved_us"))
    return _with_facts(by_link, links)


def drains(said: DataFrame, links: DataFrame) -> DataFrame:
    """By link, how often its receiver asked for what there was and for the rest of its credit, and when."""
    told = said.where((F.col("kind") == Kind.CREDIT.value) & (F.col("event") == Event.DRAIN.value))
    times = F.sum("count").alias("times"), F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us")
    return _with_facts(told.groupBy("node", "run", "link").agg(*times), links)


def _waits(said: DataFrame) -> DataFrame:
    return said.where((F.col("kind") == Kind.CREDIT.value) & (F.col("starved_us") > 0))


def _whole(waits: DataFrame) -> DataFrame:
    """One row for each wait, however often it was told of."""
    in_time = Window.partitionBy("node", "run", "link", "cause").orderBy("at_us")
    is_next = F.col("at_us") - F.col("starved_us") <= F.lag("at_us").over(in_time) + NEXT_US
    begun = waits.withColumn("is_new", F.when(is_next, 0).otherwise(1))
    numbered = begun.withColumn("wait", F.sum("is_new").over(in_time))
    from_us = F.min(F.col("at_us") - F.col("starved_us")).alias("from_us")
    return numbered.groupBy("node", "run", "link", "cause", "wait").agg(
        F.sum("starved_us").alias("starved_us"), from_us
    )


def _with_facts(waits: DataFrame, links: DataFrame) -> DataFrame:
    facts = links.select("node", "run", "link", *FACTS)
    return waits.join(F.broadcast(facts), ["node", "run", "link"], "left")

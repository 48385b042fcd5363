"""How did a run of a node end, and what had become of a neighbor that was lost?

A node that ends in order says so, as its last record; one that is killed says nothing. A neighbor that was there all
the time tells that it lost the other, too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from addressing.link_log import FAILED, STOPPED, Event, Kind
from linklogs.replay.columns import US_PER_S

CRASHED = "crashed"
CONNECTION = "connection"
"""Only that was lost."""
ITSELF = "itself"
"""The router that tells of the loss was ending."""
NEAR_US = 10 * US_PER_S
"""Between a node's end and when others notice: they are told first, or hear nothing for a while."""
CLOCKS_US = 100_000
"""By which clocks may disagree that were not corrected."""


def endings(said: DataFrame) -> DataFrame:
    """Of each run when it ended, by what it told last, and how (``ending``); ``next_us``: when the next one began."""
    is_end = (F.col("kind") == Kind.NODE.value) & (F.col("event") == Event.CLOSED.value)
    # What the writer adds may be of later.
    is_of_writer = (F.col("kind") == Kind.NODE.value) & F.col("event").isin(Event.LOST.value, Event.CHANGED.value)
    closed_us = F.max(F.when(is_end, F.col("at_us")))
    heard = said.groupBy("node", "run").agg(
        F.min("at_us").alias("first_us"),
        F.coalesce(closed_us, F.max(F.when(~is_of_writer, F.col("at_us")))).alias("ended_us"),
        F.coalesce(F.max(F.when(is_end, F.col("cause"))), F.lit(CRASHED)).alias("ending"),
    )
    return heard.withColumn("next_us", F.lead("first_us").over(Window.partitionBy("node").orderBy("run")))


def explained(outages: DataFrame, said: DataFrame) -> DataFrame:
    """Outages of neighbors with ``why``: stopped, failed, crashed, connection, itself; null where nothing tells it."""
    ends = endings(said).select(F.col("node").alias("ended"), "run", "ended_us", "next_us", "ending")
    met = outages.join(F.broadcast(ends), _is_end_of_neighbor() | _is_own_end(), "left")
    of_neighbor = F.when(F.col("ended") == F.col("neighbor"), F.col("run"))
    ended = met.groupBy(*outages.columns).agg(
        F.max_by("ending", of_neighbor).alias("ending"),
        F.count(F.when(F.col("ended") == F.col("node"), 1)).alias("own"),
    )
    told = ended.join(F.broadcast(_losses(said)), _tells_it_too(), "left")
    counted = told.groupBy(*ended.columns).agg(F.count("told_us").alias("times"))
    why = F.when(F.col("own") > 0, ITSELF).when(F.col("ending").isin(STOPPED, FAILED), F.col("ending"))
    why = why.when(F.col("times") > 0, CONNECTION).otherwise(F.col("ending"))
    return counted.withColumn("why", why).drop("ending", "own", "times")


def _is_end_of_neighbor() -> Column:
    early_us = F.when(F.col("ending") == CRASHED, CLOCKS_US).otherwise(NEAR_US)
    is_over = F.col("next_us").isNotNull() & (F.col("at_us") > F.col("next_us") + NEAR_US)
    is_near = (F.col("at_us") >= F.col("ended_us") - early_us) & ~is_over
    return (F.col("ended") == F.col("neighbor")) & is_near & ~_is_back()


def _is_own_end() -> Column:
    """One that ends in order closes its connections before."""
    is_in_order = F.col("ending").isin(STOPPED, FAILED) & (F.col("ended") == F.col("node"))
    return is_in_order & (F.col("ended_us") - F.col("at_us")).between(0, NEAR_US) & ~_is_back()


def _is_back() -> Column:
    """The neighbor was there again before that end, which is of something else then."""
    return F.col("until_us").isNotNull() & (F.col("until_us") <= F.col("ended_us"))


def _losses(said: DataFrame) -> DataFrame:
    is_loss = (F.col("kind") == Kind.NEIGHBOR.value) & (F.col("event") == Event.CLOSED.value)
    return said.where(is_loss).select(
        F.col("node").alias("teller"), F.col("neighbor").alias("told_of"), F.col("at_us").alias("told_us")
    )


def _tells_it_too() -> Column:
    is_pair = (F.col("teller") == F.col("neighbor")) & (F.col("told_of") == F.col("node"))
    is_of_later = F.col("until_us").isNotNull() & (F.col("told_us") > F.col("until_us") + CLOCKS_US)
    return is_pair & (F.abs(F.col("told_us") - F.col("at_us")) <= NEAR_US) & ~is_of_later

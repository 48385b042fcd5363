"""Finds how runs of nodes ended, and why neighbors were lost.

A node that ends in order says so in its last record; a killed node writes no such record, and counts as crashed. If
only the connection was lost, the neighbor goes on running, and records the loss from its side, too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linklogs.replay.column_expressions import US_PER_S
from recording.columns import FAILED, STOPPED, RecordEvent, RecordKind

CRASHED = "crashed"
CONNECTION = "connection"
"""Reason for a lost neighbor: only the connection was lost, and both routers went on."""
ITSELF = "itself"
"""Reason for a lost neighbor: the router that recorded the loss was itself ending."""
NEAR_US = 10 * US_PER_S
"""The most time between a node's end and another node's record of the loss.

The other node is told before an orderly end, and notices a crash only after a while without a message.
"""
CLOCKS_US = 100_000
"""Possible difference between two clocks, since small offsets are not corrected (linklogs/replay/clocks.py)."""


def endings(said: DataFrame) -> DataFrame:
    """Return the end of each run, with its kind (``ending``) and the start of the node's next run, null for the last.

    A run without a record of its end ends with its last record, and counts as CRASHED, even if the run still goes on.
    """
    is_end = (F.col("kind") == RecordKind.NODE.value) & (F.col("event") == RecordEvent.CLOSED.value)
    # Records that the writer of link logs adds may be later than the node's end, so they do not count as its last
    # record.
    is_of_clock = (F.col("event") == RecordEvent.CHANGED.value) & F.col("clock_us").isNotNull()
    is_of_writer = (F.col("kind") == RecordKind.NODE.value) & ((F.col("event") == RecordEvent.LOST.value) | is_of_clock)
    closed_us = F.max(F.when(is_end, F.col("at_us")))
    heard = said.groupBy("node", "run").agg(
        F.min("at_us").alias("first_us"),
        F.coalesce(closed_us, F.max(F.when(~is_of_writer, F.col("at_us")))).alias("ended_us"),
        F.coalesce(F.max(F.when(is_end, F.col("cause"))), F.lit(CRASHED)).alias("ending"),
    )
    return heard.withColumn("next_us", F.lead("first_us").over(Window.partitionBy("node").orderBy("run")))


def explained(outages: DataFrame, said: DataFrame) -> DataFrame:
    """Add column ``why`` to outages of neighbors: how the neighbor ended (stopped, failed or crashed), CONNECTION if
    only the connection was lost, or ITSELF if the router that recorded the loss was ending.

    The column is null if the cause is unknown.
    """
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
    """Return the condition that the node which recorded the loss itself ended in order soon after the loss.

    A node that ends in order closes the node's connections before the node's end.
    """
    is_in_order = F.col("ending").isin(STOPPED, FAILED) & (F.col("ended") == F.col("node"))
    return is_in_order & (F.col("ended_us") - F.col("at_us")).between(0, NEAR_US) & ~_is_back()


def _is_back() -> Column:
    """Return the condition that the lost neighbor was back before a node ended: the end belongs to another outage."""
    return F.col("until_us").isNotNull() & (F.col("until_us") <= F.col("ended_us"))


def _losses(said: DataFrame) -> DataFrame:
    is_loss = (F.col("kind") == RecordKind.NEIGHBOR.value) & (F.col("event") == RecordEvent.CLOSED.value)
    return said.where(is_loss).select(
        F.col("node").alias("teller"), F.col("neighbor").alias("told_of"), F.col("at_us").alias("told_us")
    )


def _tells_it_too() -> Column:
    is_pair = (F.col("teller") == F.col("neighbor")) & (F.col("told_of") == F.col("node"))
    is_of_later = F.col("until_us").isNotNull() & (F.col("told_us") > F.col("until_us") + CLOCKS_US)
    return is_pair & (F.abs(F.col("told_us") - F.col("at_us")) <= NEAR_US) & ~is_of_later

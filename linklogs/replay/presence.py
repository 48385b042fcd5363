"""Marks the entities (connections, links, queues) that existed in the time of the report.

Tables leave out an entity that did not exist then and had no messages then.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay.column_expressions import touches
from linklogs.replay.endings import CRASHED, endings

WAS_THERE = "was_there"
ENDED_US = "ended_us"


def marked(things: DataFrame, said: DataFrame, span: TimeSpan) -> DataFrame:
    """Add column WAS_THERE, whether the entity existed in the span, and ENDED_US, null if the entity may still exist.

    The end of a node ends the node's entities without a record of their end. ENDED_US is then the time of the node's
    orderly end, or, after a crash, the time at which the node is back.
    """
    known = things.join(F.broadcast(_over(said)), ["node", "run"], "left")
    ended = known.withColumn(ENDED_US, F.coalesce("closed_us", "over_us")).drop("over_us")
    begins = F.coalesce("opened_us", F.lit(0))
    return ended.withColumn(WAS_THERE, touches(begins, F.col(ENDED_US), span))


def _over(said: DataFrame) -> DataFrame:
    """Return the time at which each run was certainly over: its recorded end, or else the start of the node's next run.

    The time is null for a node's last run without a record of its end.
    """
    told_us = F.when(F.col("ending") != CRASHED, F.col("ended_us"))
    return endings(said).select("node", "run", F.coalesce(told_us, "next_us").alias("over_us"))

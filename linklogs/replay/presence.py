"""Was it there in the time of the report? What went before, or came after, is in no table of that time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linklogs.moments import Span
from linklogs.replay.columns import touches
from linklogs.replay.endings import CRASHED, endings

WAS_THERE = "was_there"
ENDED_US = "ended_us"


def marked(things: DataFrame, said: DataFrame, span: Span) -> DataFrame:
    """With WAS_THERE, and ENDED_US: null of what may be there still. Of the end of what its node had when that ended
    nobody told: it ended with a node that says so, with one that crashed when that is there again."""
    known = things.join(F.broadcast(_over(said)), ["node", "run"], "left")
    ended = known.withColumn(ENDED_US, F.coalesce("closed_us", "over_us")).drop("over_us")
    begins = F.coalesce("opened_us", F.lit(0))
    return ended.withColumn(WAS_THERE, touches(begins, F.col(ENDED_US), span))


def _over(said: DataFrame) -> DataFrame:
    """Of each run when it was over for certain; null of the last one of a node that said nothing of its end."""
    told_us = F.when(F.col("ending") != CRASHED, F.col("ended_us"))
    return endings(said).select("node", "run", F.coalesce(told_us, "next_us").alias("over_us"))

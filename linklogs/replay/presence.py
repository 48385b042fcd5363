"""Was it there in the time of the report? What went before, or came after, is in no table of that time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linklogs.moments import Span
from linklogs.replay.columns import touches

WAS_THERE = "was_there"


def marked(things: DataFrame, said: DataFrame, span: Span) -> DataFrame:
    """With WAS_THERE. Nobody told of the end of what a crashed node had: it ends when that node is there again."""
    if span.is_all:
        return things.withColumn(WAS_THERE, F.lit(True))
    ends = F.coalesce("closed_us", "next_us")
    begins = F.coalesce("opened_us", F.lit(0))
    known = things.join(F.broadcast(_next(said)), ["node", "run"], "left")
    return known.withColumn(WAS_THERE, touches(begins, ends, span)).drop("next_us")


def _next(said: DataFrame) -> DataFrame:
    """Of each run when the next one of the node began."""
    begun = said.groupBy("node", "run").agg(F.min("at_us").alias("begun_us"))
    next_us = F.lead("begun_us").over(Window.partitionBy("node").orderBy("run"))
    return begun.select("node", "run", next_us.alias("next_us"))

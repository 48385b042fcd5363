"""Makes the tables of runs of nodes, and of records and messages that are not in the logs."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linklogs.replay.endings import CRASHED
from linklogs.replay.repeats import TIMES
from recording.columns import RecordEvent, RecordKind


def runs(said: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return a row for each run of a node, with the times of its first and last state record.

    ``restart``: the number of the node's earlier runs in the logs. ``ending``: stopped, failed or crashed; null for a
    run that may go on.
    """
    heard = said.groupBy("node", "run").agg(F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us"))
    in_time = Window.partitionBy("node").orderBy("run")
    facts = nodes.select("node", "run", "role", "version", "topology", F.col("cause").alias("ending"))
    known = heard.join(facts, ["node", "run"], "left").withColumn("restart", F.row_number().over(in_time) - 1)
    has_next = F.lead("run").over(in_time).isNotNull()
    return known.withColumn("ending", F.coalesce("ending", F.when(has_next, CRASHED)))


def missing(said: DataFrame, flows: DataFrame) -> DataFrame:
    """Return, for each run, the records lost for want of room, the records present, and the share that is missing.

    ``untold``, in a row without a run: records of runs that no file describes, which are in no other table.
    """
    lost = said.where((F.col("kind") == RecordKind.NODE.value) & (F.col("event") == RecordEvent.LOST.value))
    lost = lost.groupBy("node", "run").agg(F.sum("count").alias("lost"))
    counted = flows.where(F.col("side") == "all").groupBy("node", "run").agg(F.sum("messages").alias("records"))
    moved = F.when(F.col("run").isNotNull(), F.col("records")).alias("moved")
    untold = F.when(F.col("run").isNull(), F.col("records")).alias("untold")
    here = counted.select("node", "run", moved, untold)
    told = said.groupBy("node", "run").agg(F.sum(F.coalesce(TIMES, F.lit(1))).alias("told"))
    both = here.join(told, ["node", "run"], "full").join(lost, ["node", "run"], "full")
    filled = both.fillna(0, ["moved", "untold", "told", "lost"])
    gone = F.col("lost") + F.col("untold")
    return filled.withColumn("share", F.try_divide(gone, F.col("moved") + F.col("told") + gone))


def drops(said: DataFrame, links: DataFrame) -> DataFrame:
    """Return the number of pre-settled messages, or copies of them, that nodes dropped, by link and cause."""
    told = said.where(F.col("kind") == RecordKind.DROP.value)
    dropped = told.groupBy("node", "run", "link", "cause").agg(F.sum("count").alias("messages"))
    facts = links.select("node", "run", "link", "address", "role", "container", "user")
    return dropped.join(F.broadcast(facts), ["node", "run", "link"], "left")

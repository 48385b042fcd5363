"""Makes the tables of queues: depth, age of the oldest message, and messages in and out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linklogs.replay.column_expressions import like, window
from linklogs.replay.endings import endings
from linklogs.replay.entities import queues as things_of
from linklogs.replay.presence import WAS_THERE
from recording.columns import RecordEvent, RecordKind

KEYS = ("node", "run", "queue")
EVENTS = (
    RecordEvent.ENQUEUED,
    RecordEvent.DEQUEUED,
    RecordEvent.EXPIRED,
    RecordEvent.DEAD_LETTERED,
    RecordEvent.REMOVED,
)


def things(said: DataFrame, address: str | None) -> DataFrame:
    """Return the queues whose address matches the pattern ``address``; all queues without a pattern."""
    return things_of(said).where(like("address", address))


def in_all(said: DataFrame, flows: DataFrame, queues: DataFrame, from_us: int | None) -> DataFrame:
    """Return the table of queues over the whole time, from depths in state records and traffic in ``flows``.

    The table has the greatest and the last depth. The last depth recorded before ``from_us`` counts as the depth at
    ``from_us``. The greatest age of a queue's oldest message includes the age at the end of the records.
    """
    depths = _with_ages(_depths(_since(said, from_us), KEYS), said, queues)
    both = depths.join(_moved(flows, KEYS), list(KEYS), "full")
    # A queue that was gone before ``from_us`` gets no row, though a depth was recorded before.
    return _named(both, queues).where(F.col(WAS_THERE) | F.col(RecordEvent.ENQUEUED.value).isNotNull()).drop(WAS_THERE)


def by_window(said: DataFrame, flows: DataFrame, queues: DataFrame, window_us: int) -> DataFrame:
    keys = ("window", *KEYS)
    depths = _depths(said.withColumn("window", window(F.col("at_us"), window_us)), keys)
    both = depths.join(_moved(flows, keys), list(keys), "full")
    return _named(both.withColumn("window", F.timestamp_micros("window")), queues).drop(WAS_THERE)


def _since(said: DataFrame, from_us: int | None) -> DataFrame:
    if from_us is None:
        return said
    latest = Window.partitionBy(*KEYS).orderBy(F.desc("at_us"))
    before = said.where((F.col("at_us") < from_us) & F.col("depth_count").isNotNull())
    last = before.withColumn("nth", F.row_number().over(latest)).where(F.col("nth") == 1).drop("nth")
    return said.where(F.col("at_us") >= from_us).unionByName(last)


def _depths(said: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    told = said.where((F.col("kind") == RecordKind.QUEUE.value) & F.col("depth_count").isNotNull())
    return told.groupBy(*keys).agg(
        F.max("depth_count").alias("most_messages"),
        F.max_by("depth_count", "at_us").alias("last_messages"),
        F.max("depth_bytes").alias("most_bytes"),
        F.max("acquired_count").alias("most_acquired"),
        F.max_by("acquired_count", "at_us").alias("last_acquired"),
        F.max("oldest_us").alias("oldest_us"),
        F.max_by("oldest_us", "at_us").alias("last_oldest_us"),
    )


def _with_ages(depths: DataFrame, said: DataFrame, queues: DataFrame) -> DataFrame:
    """Return ``depths`` with ages at least as great as the age of the oldest message at the end of the records.

    A broker records a queue only when the queue changes.
    Without a change the oldest message gets older, until the queue is deleted, or its broker ends.
    """
    told = said.where((F.col("kind") == RecordKind.QUEUE.value) & F.col("depth_count").isNotNull())
    of_queue = Window.partitionBy(*KEYS)
    changed_us = F.max(F.when(F.col("event") != RecordEvent.LIVE.value, F.col("at_us"))).over(of_queue)
    since = told.withColumn("changed_us", F.coalesce(changed_us, F.lit(0)))
    # In files of the first version a snapshot repeats an age recorded before, so the earliest arrival counts.
    last = (
        since.where(F.col("at_us") >= F.col("changed_us"))
        .groupBy(*KEYS)
        .agg(
            F.max_by("depth_count", "at_us").alias("count"), F.min(F.col("at_us") - F.col("oldest_us")).alias("came_us")
        )
    )
    ended = endings(said).select("node", "run", F.col("ended_us").alias("end_us"))
    closed = last.join(F.broadcast(queues.select(*KEYS, "closed_us")), list(KEYS), "left")
    until_us = F.least("closed_us", "end_us")
    age_us = F.when(F.col("count") > 0, F.greatest(F.lit(0), until_us - F.col("came_us")))
    ages = closed.join(F.broadcast(ended), ["node", "run"]).select(*KEYS, age_us.alias("age_us"))
    aged = depths.join(ages, list(KEYS), "left")
    # A missing age does no harm: in Spark, the greatest of null and a number is the number.
    for name in ("oldest_us", "last_oldest_us"):
        aged = aged.withColumn(name, F.greatest(name, "age_us"))
    return aged.drop("age_us")


def _moved(flows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    rows = flows.where(F.col("side") == "queue").withColumnRenamed("link", "queue")
    longest = F.max(F.when(F.col("what") == RecordEvent.DEQUEUED.value, F.col("max_us"))).alias("longest_wait_us")
    return rows.groupBy(*keys).agg(*(_of(event) for event in EVENTS), longest)


def _of(event: RecordEvent) -> Column:
    return F.sum(F.when(F.col("what") == event.value, F.col("messages")).otherwise(0)).alias(event.value)


def _named(table: DataFrame, queues: DataFrame) -> DataFrame:
    facts = queues.select(*KEYS, "address", F.col("name").alias("subscriber"), WAS_THERE)
    return table.join(F.broadcast(facts), list(KEYS))

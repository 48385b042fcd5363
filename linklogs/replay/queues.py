"""How full were queues, how old was what lay in them, and what went in and out?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from addressing.link_log import Event, Kind
from linklogs.replay.columns import like, window
from linklogs.replay.presence import WAS_THERE
from linklogs.replay.things import queues as things_of

KEYS = ("node", "run", "queue")
EVENTS = (Event.ENQUEUED, Event.DEQUEUED, Event.EXPIRED, Event.DEAD_LETTERED, Event.REMOVED)


def things(said: DataFrame, address: str | None) -> DataFrame:
    """Queues whose address matches a pattern."""
    return things_of(said).where(like("address", address))


def in_all(said: DataFrame, flows: DataFrame, queues: DataFrame) -> DataFrame:
    """``flows``: of the whole time. Depths are the largest, and the last that was told."""
    both = _depths(said, KEYS).join(_moved(flows, KEYS), list(KEYS), "full")
    # Of one that went before, what was told last is its depth no more.
    return _named(both, queues).where(F.col(WAS_THERE) | F.col(Event.ENQUEUED.value).isNotNull()).drop(WAS_THERE)


def by_window(said: DataFrame, flows: DataFrame, queues: DataFrame, window_us: int) -> DataFrame:
    keys = ("window", *KEYS)
    depths = _depths(said.withColumn("window", window(F.col("at_us"), window_us)), keys)
    both = depths.join(_moved(flows, keys), list(keys), "full")
    return _named(both.withColumn("window", F.timestamp_micros("window")), queues).drop(WAS_THERE)


def _depths(said: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    told = said.where((F.col("kind") == Kind.QUEUE.value) & F.col("depth_count").isNotNull())
    return told.groupBy(*keys).agg(
        F.max("depth_count").alias("most_messages"),
        F.max_by("depth_count", "at_us").alias("last_messages"),
        F.max("depth_bytes").alias("most_bytes"),
        F.max("oldest_us").alias("oldest_us"),
        F.max_by("oldest_us", "at_us").alias("last_oldest_us"),
    )


def _moved(flows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    rows = flows.where(F.col("side") == "queue").withColumnRenamed("link", "queue")
    longest = F.max(F.when(F.col("what") == Event.DEQUEUED.value, F.col("max_us"))).alias("longest_wait_us")
    return rows.groupBy(*keys).agg(*(_of(event) for event in EVENTS), longest)


def _of(event: Event) -> Column:
    return F.sum(F.when(F.col("what") == event.value, F.col("messages")).otherwise(0)).alias(event.value)


def _named(table: DataFrame, queues: DataFrame) -> DataFrame:
    facts = queues.select(*KEYS, "address", F.col("name").alias("subscriber"), WAS_THERE)
    return table.join(F.broadcast(facts), list(KEYS))

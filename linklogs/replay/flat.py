"""All that was moved, as one small table: the only pass over the records of deliveries.

Columns: node, run, incoming, outgoing, outcome, part, window, bucket -> messages, size_bytes, longest_us. All that a
report says of throughput, latency and outcomes is added up from it. Of messages in queues, ``incoming`` is the number
of the queue, ``part`` is `queue`, and ``outcome`` is the event: enqueued, dequeued, expired or dead_lettered.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from addressing.link_log import Kind
from linklogs.moments import Span
from linklogs.replay.columns import bucket, window

MOVED = (Kind.DELIVERY.value, Kind.TRAFFIC.value, Kind.MESSAGE.value)
QUEUE = "queue"
KEYS = ("node", "run", "incoming", "outgoing", "outcome", "part", "window", "bucket")


def flat(records: DataFrame, window_us: int, span: Span) -> DataFrame:
    """Of records of all kinds; of those of the span only."""
    is_message = F.col("kind") == Kind.MESSAGE.value
    rows = records.where(F.col("kind").isin(*MOVED) & within(F.col("at_us"), span)).select(
        "node",
        "run",
        F.when(is_message, F.col("queue")).otherwise(F.col("incoming")).alias("incoming"),
        F.coalesce("outgoing", F.lit(0)).alias("outgoing"),
        F.coalesce("outcome", "event").alias("outcome"),
        F.when(is_message, F.lit(QUEUE)).otherwise(F.col("part")).alias("part"),
        window(F.col("at_us"), window_us).alias("window"),
        bucket("took_us").alias("bucket"),
        F.coalesce("count", F.lit(1)).alias("messages"),
        "size_bytes",
        "took_us",
    )
    return rows.groupBy(*KEYS).agg(*added("took_us"))


def without_windows(flat: DataFrame) -> DataFrame:
    """The same for the whole time."""
    return flat.groupBy(*(key for key in KEYS if key != "window")).agg(*added("longest_us"))


def added(longest: str) -> list[Column]:
    return [
        F.sum("messages").alias("messages"),
        F.sum("size_bytes").alias("size_bytes"),
        F.max(longest).alias("longest_us"),
    ]


def within(at_us: Column, span: Span) -> Column:
    since = F.lit(True) if span.from_us is None else at_us >= span.from_us
    return since if span.to_us is None else since & (at_us < span.to_us)

"""Rows of the flat table as what people ask for: messages, bytes, rates, outcomes, and latency from buckets.

Percentiles are of the nearest rank, and the middle of the bucket in which that lies: BUCKET_ERROR off at most. The
largest is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from addressing.link_log import Outcome
from linklogs.replay.columns import middle_us, per_s
from linklogs.replay.flat import added

OUTCOMES = tuple(outcome.value for outcome in Outcome)
PERCENTS = (50, 95, 99)
COUNTS = ("messages", "size_bytes", "longest_us", *OUTCOMES)
MEASURES = (
    "messages",
    "size_bytes",
    "messages_per_s",
    "bytes_per_s",
    *OUTCOMES,
    *(f"p{percent}_us" for percent in PERCENTS),
    "max_us",
)


def measured(rows: DataFrame, keys: Sequence[str], seconds: float, *, is_fine: bool = False) -> DataFrame:
    """``rows`` have the keys, outcome, bucket and counts of the flat table; rates are over so many seconds.

    ``is_fine``: few rows have the same keys. They are then not added up by bucket first, which would be a shuffle more.
    """
    by_outcome = rows.select(*keys, "bucket", "messages", "size_bytes", "longest_us", *map(_of, OUTCOMES))
    if not is_fine:
        sums = [F.sum(outcome).alias(outcome) for outcome in OUTCOMES]
        by_outcome = by_outcome.groupBy(*keys, "bucket").agg(*added("longest_us"), *sums)
    totals = by_outcome.groupBy(*keys).agg(
        *added("longest_us"),
        *(F.sum(outcome).alias(outcome) for outcome in OUTCOMES),
        F.sort_array(F.collect_list(F.struct("bucket", "messages"))).alias("histogram"),
    )
    ranked = totals.withColumn("ranked", _ranked())
    return ranked.select(
        *keys,
        "messages",
        "size_bytes",
        per_s(F.col("messages"), seconds).alias("messages_per_s"),
        per_s(F.col("size_bytes"), seconds).alias("bytes_per_s"),
        *OUTCOMES,
        *(_percentile(percent) for percent in PERCENTS),
        F.col("longest_us").alias("max_us"),
    )


def _of(outcome: str) -> Column:
    return F.when(F.col("outcome") == outcome, F.col("messages")).otherwise(0).alias(outcome)


def _ranked() -> Column:
    """For each percentage the first bucket up to which there are as many: one walk along the histogram."""
    start = ", ".join(["0L as seen", *(f"cast(null as int) as p{percent}" for percent in PERCENTS)])
    seen = "so_far.seen + each.messages"
    steps = (
        f"coalesce(so_far.p{percent}, if({seen} >= {_rank(percent)}, each.bucket, null)) as p{percent}"
        for percent in PERCENTS
    )
    step = ", ".join([f"{seen} as seen", *steps])
    return F.expr(f"aggregate(histogram, struct({start}), (so_far, each) -> struct({step}))")


def _rank(percent: int) -> str:
    """How many are at or below a percentile, at least."""
    return f"(messages * {percent} + 99) div 100"


def _percentile(percent: int) -> Column:
    """Not above the largest, which is known exactly."""
    return F.least(middle_us(f"ranked.p{percent}"), F.col("longest_us")).alias(f"p{percent}_us")

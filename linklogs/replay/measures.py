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


def histograms(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Rows of the flat table added up by keys that few rows share; their buckets as a list of (bucket, messages)."""
    by_outcome = rows.select(*keys, "bucket", "messages", "size_bytes", "longest_us", *map(_of, OUTCOMES))
    pairs = F.collect_list(F.struct("bucket", "messages"))
    return by_outcome.groupBy(*keys).agg(*added("longest_us"), *_added_outcomes(), pairs.alias("histogram"))


def measured(rows: DataFrame, keys: Sequence[str], seconds: float) -> DataFrame:
    """``rows`` have the keys and what `histograms` adds; rates are over so many seconds."""
    # A bucket may come several times in the list: ranks are counted along it, which is the same.
    whole = F.sort_array(F.flatten(F.collect_list("histogram")))
    totals = rows.groupBy(*keys).agg(*added("longest_us"), *_added_outcomes(), whole.alias("histogram"))
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


def _added_outcomes() -> list[Column]:
    return [F.sum(outcome).alias(outcome) for outcome in OUTCOMES]


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

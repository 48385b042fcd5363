"""By how much do the clocks of nodes differ? Found from links that two nodes saw opened and closed.

A link between two nodes has the same name at both ends, and is attached within a round trip at both. A link that
one end begins is heard a little later at the other; as links are begun from both ends, half of that error goes away,
and the rest is a few ms. Differences below SMALL_US are left alone: no window is as short as they would matter.
"""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from addressing.link_log import Event, Kind

SMALL_US = 50_000
MOST_SAMPLES = 20_000
Pair = tuple[str, str]
COLUMNS = pa.schema([("node", pa.string()), ("ahead_us", pa.int64())])


def ahead_us(said: DataFrame) -> dict[str, int]:
    """What each clock is ahead of most of the others; only clocks that are off by more than SMALL_US."""
    return {node: ahead for node, ahead in solved(_differences(said)).items() if abs(ahead) > SMALL_US}


def corrected(records: DataFrame, ahead_us: Mapping[str, int]) -> DataFrame:
    """What clocks are ahead, taken off the times of their nodes."""
    if not ahead_us:
        return records
    pairs = [F.lit(value) for pair in ahead_us.items() for value in pair]
    ahead = F.coalesce(F.create_map(*pairs)[F.col("node")], F.lit(0))
    return records.withColumn("at_us", F.col("at_us") - ahead)


def table(spark: SparkSession, ahead_us: Mapping[str, int]) -> DataFrame:
    """What was corrected."""
    # Of Arrow: of a list, Spark would start Python on a worker.
    return spark.createDataFrame(pa.table([list(ahead_us), list(ahead_us.values())], schema=COLUMNS))


def solved(differences: Mapping[Pair, float]) -> dict[str, int]:
    """From differences between pairs, second less first, what each clock is ahead of the middle one of its part."""
    near: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for (one, other), difference in differences.items():
        near[one].append((other, difference))
        near[other].append((one, -difference))
    found: dict[str, int] = {}
    for node in sorted(near):
        if node not in found:
            found.update(_centred(_walked(node, near)))
    return found


def _differences(said: DataFrame) -> dict[Pair, float]:
    """The median of each pair of nodes, of a sample of links."""
    is_event = F.col("event").isin(Event.OPENED.value, Event.CLOSED.value)
    told = said.where((F.col("kind") == Kind.LINK.value) & is_event & F.col("name").isNotNull())
    ends = told.groupBy("name", "event").agg(
        F.min_by(F.struct("node", "at_us"), "node").alias("one"),
        F.max_by(F.struct("node", "at_us"), "node").alias("other"),
        F.count("*").alias("times"),
    )
    both = ends.where((F.col("times") == 2) & (F.col("one.node") != F.col("other.node"))).limit(MOST_SAMPLES)
    by_pair = both.groupBy("one.node", F.col("other.node").alias("other_node")).agg(
        F.median(F.col("other.at_us") - F.col("one.at_us")).alias("difference")
    )
    return {(row[0], row[1]): row[2] for row in by_pair.collect()}


def _walked(start: str, near: Mapping[str, Iterable[tuple[str, float]]]) -> dict[str, float]:
    ahead = {start: 0.0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other, difference in near[node]:
            if other not in ahead:
                ahead[other] = ahead[node] + difference
                waiting.append(other)
    return ahead


def _centred(ahead: Mapping[str, float]) -> dict[str, int]:
    middle = statistics.median_low(ahead.values())
    return {node: round(value - middle) for node, value in ahead.items()}

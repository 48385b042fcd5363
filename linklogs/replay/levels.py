"""Traffic of the mesh, of routers, connections, links, addresses and users; in all, and by window.

`mesh`, `addresses` and `users` count a message where it enters (``side`` in) and where it leaves (``side`` out), apart
for clients and queues (``peer``): through a queue it enters twice, from its producer and from the queue. `routers`,
`connections` and `links` count whatever came in or went out of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linklogs.replay.columns import US_PER_S, middle_us
from linklogs.replay.measures import measured
from linklogs.replay.sides import crossing
from linklogs.replay.things import CONNECTION_FACTS, LINK_FACTS

BY_WINDOW = "_by_window"
TIMES = ("opened_us", "closed_us", "cause")
SHOWN = ("opened_us", "closed_us", "at_us", "first_us", "last_us", "until_us")


def _all(sides: DataFrame) -> DataFrame:
    return sides


def _of_users(sides: DataFrame) -> DataFrame:
    return crossing(sides).where(F.col("user").isNotNull())


@dataclass(frozen=True, slots=True)
class Level:
    """``rows``: which of the sides count."""

    name: str
    keys: tuple[str, ...]
    rows: Callable[[DataFrame], DataFrame]


LEVELS = (
    Level("mesh", ("side", "peer"), crossing),
    Level("routers", ("node", "side"), _all),
    Level("connections", ("node", "run", "connection", "side"), _all),
    Level("links", ("node", "run", "link", "side"), _all),
    Level("addresses", ("address", "side", "peer"), crossing),
    Level("users", ("user", "side"), _of_users),
)


def in_all(sides: DataFrame, seconds: float) -> dict[str, DataFrame]:
    """``sides`` of the table without windows; rates are over ``seconds``, the whole time of the report."""
    return {level.name: measured(level.rows(sides), level.keys, seconds) for level in LEVELS}


def by_window(sides: DataFrame, window_us: int) -> dict[str, DataFrame]:
    """The times of windows are when they begin."""
    seconds = window_us / US_PER_S
    return {
        level.name + BY_WINDOW: measured(level.rows(sides), ("window", *level.keys), seconds).withColumn(
            "window", F.timestamp_micros("window")
        )
        for level in LEVELS
    }


def latency(sides: DataFrame) -> DataFrame:
    """How many messages crossed the mesh in each bucket of latency, and its bounds."""
    pairs = crossing(sides).select("side", "peer", F.inline("histogram"))
    counted = pairs.groupBy("side", "peer", "bucket").agg(F.sum("messages").alias("messages"))
    wide = F.expr("if(bucket < 16, 0L, shiftleft(1L, cast(bucket div 16 - 1 as int)) - 1)")
    least = (middle_us("bucket") - wide / 2).cast("long")
    return counted.select("*", least.alias("least_us"), (least + wide).alias("largest_us")).orderBy("bucket")


def described(tables: Mapping[str, DataFrame], links: DataFrame, connections: DataFrame) -> dict[str, DataFrame]:
    """Links and connections with their facts: also those on which nothing moved."""
    of_links = links.select("node", "run", "link", *LINK_FACTS, *TIMES)
    of_connections = connections.select("node", "run", "connection", *CONNECTION_FACTS, *TIMES)
    return {
        **tables,
        "links": of_links.join(tables["links"], ["node", "run", "link"], "full"),
        "connections": of_connections.join(tables["connections"], ["node", "run", "connection"], "full"),
    }


def times(table: DataFrame) -> DataFrame:
    """With times that people can read in place of numbers: `opened_us` becomes `opened_at`."""
    for name in [name for name in table.columns if name in SHOWN]:
        table = table.withColumn(name, F.timestamp_micros(name)).withColumnRenamed(name, f"{name[:-3]}_at")
    return table

"""The flat table as the links see it: one row for each link and direction, with a histogram of latencies.

What came in is WHOLE or MANY, what went out WHOLE or COPY: a multicast to three counts once where it came in, and three
times where it went out. A message crosses the mesh on several links; where totals of the mesh are asked for, only its
first and last link count: `crossing` keeps those. Brokers' own records are left out there, as the routers beside them
have the same messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from addressing.link_log import Part
from linklogs.replay.columns import like
from linklogs.replay.flat import QUEUE
from linklogs.replay.measures import histograms

IN = "in"
OUT = "out"
CLIENT = "client"
BETWEEN_ROUTERS = ("router", "edge")
"""Roles of connections on which messages are on their way."""
LINK = ("node", "run", "link")


def sides(flat: DataFrame, links: DataFrame, nodes: DataFrame, address: str | None) -> DataFrame:
    """By link and ``side``, and by window if the flat table has them; with the facts of the link.

    ``address``: a pattern. Facts are joined last, to the few rows that are left then.
    """
    came = _side(flat, IN, "incoming", (Part.WHOLE, Part.MANY))
    went = _side(flat, OUT, "outgoing", (Part.WHOLE, Part.COPY))
    over_time = [name for name in ("window",) if name in flat.columns]
    by_link = histograms(came.unionByName(went), (*over_time, *LINK, "side"))
    known = F.broadcast(links.where(like("address", address)))
    joined = by_link.join(known, list(LINK), "left" if address is None else "inner")
    roles = nodes.groupBy("node").agg(F.max("role").alias("node_role"))
    return joined.join(F.broadcast(roles), "node", "left").withColumn("peer", _peer())


def crossing(sides: DataFrame) -> DataFrame:
    """Where messages entered the mesh or left it: ``side`` in from clients and queues, out to them; see ``peer``."""
    is_router = F.coalesce(F.col("node_role") != "broker", F.lit(True))
    return sides.where(is_router & F.col("peer").isNotNull())


def _side(flat: DataFrame, side: str, link: str, parts: tuple[Part, ...]) -> DataFrame:
    is_of_side = F.col("part").isin(*(part.value for part in parts)) & (F.col(link) != 0)
    other = {"incoming": "outgoing", "outgoing": "incoming"}[link]
    return flat.where(is_of_side).withColumnRenamed(link, "link").drop(other).withColumn("side", F.lit(side))


def _peer() -> Column:
    """Who is beyond the link: a client, or a queue (any broker). Null within the mesh, and of unknown links."""
    return (
        F.when(F.col("role").isin("producer", "consumer"), CLIENT)
        .when(F.col("role") == "broker", QUEUE)
        .when((F.col("role") == "route") & (F.col("connection_role") == "broker"), QUEUE)
        .when((F.col("role") == "route") & ~F.col("connection_role").isin(*BETWEEN_ROUTERS), CLIENT)
    )

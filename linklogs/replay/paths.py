"""Which way did messages go, was there a cheaper one, and how loaded is each connection between routers?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from addressing.link_log import Event, Kind
from linklogs.replay.columns import per_s
from linklogs.replay.presence import WAS_THERE


def told_paths(said: DataFrame) -> DataFrame:
    """The cheapest paths as routers last told them: from node to egress, routers with > between them, and the cost."""
    told = said.where((F.col("kind") == Kind.PATH.value) & (F.col("event") != Event.CLOSED.value))
    return told.groupBy("node", "egress").agg(
        F.max_by("path", "at_us").alias("cheapest"), F.max_by("cost", "at_us").alias("cheapest_cost")
    )


def circuits(flows: DataFrame, links: DataFrame, cheapest: DataFrame, costs: DataFrame) -> DataFrame:
    """Of each circuit, where it begins: its path, the cheapest one, and what went over it."""
    begun = links.where((F.col("role") == "circuit") & (F.col("direction") == "outgoing") & F.col("path").isNotNull())
    begun = begun.where((F.col("ingress") == F.col("node")) | F.col("ingress").isNull())
    known = begun.select("node", "run", "link", "address", "egress", "path", "opened_us", "closed_us", WAS_THERE)
    moved = _went(flows).groupBy("node", "run", "link")
    carried = moved.agg(F.sum("messages").alias("messages"), F.sum("size_bytes").alias("size_bytes"))
    loaded = known.join(carried, ["node", "run", "link"], "left")
    there = loaded.where(F.col(WAS_THERE) | F.col("messages").isNotNull()).drop(WAS_THERE)
    joined = there.join(cheapest, ["node", "egress"], "left")
    priced = joined.join(_priced(joined, costs), ["node", "path"], "left")
    is_other = F.col("path") != F.col("cheapest")
    # Where both cost the same, the way is another, but no detour.
    costs_more = F.coalesce(F.col("cost") > F.col("cheapest_cost"), F.lit(True))
    return priced.withColumn("is_detour", F.coalesce(is_other & costs_more, F.lit(False)))


def costs(said: DataFrame) -> DataFrame:
    """What each way between two neighbors cost, as last told."""
    told = said.where((F.col("kind") == Kind.NEIGHBOR.value) & F.col("cost").isNotNull())
    return told.groupBy("node", "neighbor").agg(F.max_by("cost", "at_us").alias("cost"))


def edges(flows: DataFrame, links: DataFrame, costs: DataFrame, seconds: float) -> DataFrame:
    """From each router to each neighbor: cost, and what went that way."""
    to_routers = links.where((F.col("direction") == "outgoing") & F.col("connection_role").isin("router", "edge"))
    way = to_routers.select("node", "run", "link", F.col("beyond").alias("neighbor"))
    moved = _went(flows).join(F.broadcast(way), ["node", "run", "link"]).groupBy("node", "neighbor")
    load = moved.agg(F.sum("messages").alias("messages"), F.sum("size_bytes").alias("size_bytes"))
    return (
        costs.join(load, ["node", "neighbor"], "full")
        .fillna(0, ["messages", "size_bytes"])
        .withColumn("messages_per_s", per_s(F.col("messages"), seconds))
        .withColumn("bytes_per_s", per_s(F.col("size_bytes"), seconds))
    )


def _went(flows: DataFrame) -> DataFrame:
    return flows.where(F.col("side") == "out")


def _priced(circuits: DataFrame, costs: DataFrame) -> DataFrame:
    """The cost of each path: null where that of a step is not known."""
    routers = F.split(F.col("path"), ">")
    whole = F.when(routers[0] == F.col("node"), routers).otherwise(F.concat(F.array("node"), routers))
    paths = circuits.select("node", "path").distinct().withColumn("routers", whole)
    # A path that begins and ends here has no steps.
    steps = paths.where(F.size("routers") > 1).select(
        F.col("node").alias("from"),
        "path",
        F.explode(F.arrays_zip(F.slice("routers", 1, F.size("routers") - 1).alias("one"),
                               F.slice("routers", 2, F.size("routers")).alias("other"))).alias("step"),
    )  # fmt: skip
    known = steps.join(costs, (F.col("step.one") == costs["node"]) & (F.col("step.other") == costs["neighbor"]), "left")
    summed = known.groupBy("from", "path").agg(F.when(F.count("cost") == F.count("*"), F.sum("cost")).alias("cost"))
    return summed.withColumnRenamed("from", "node")

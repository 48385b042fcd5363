"""Makes the tables of circuits, with the path taken and the cheapest path, and of the load between routers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linklogs.replay.codes import END_US
from linklogs.replay.column_expressions import per_s
from linklogs.replay.presence import ENDED_US, WAS_THERE
from recording.columns import RecordEvent, RecordKind

CIRCUIT = ("node", "run", "link")


def circuits(flows: DataFrame, links: DataFrame, said: DataFrame, cheapest: DataFrame | None) -> DataFrame:
    """Return each circuit at its ingress, with its path, the cheapest path, and its traffic.

    A circuit is the chain of links for one address from an ingress to an egress router. Costs and the cheapest path are
    those at the circuit's end, or the last ones for a circuit that has not ended. ``cheapest``, if given, has the
    cheapest paths instead: for each node and egress the routers, with > between them, and the cost.
    """
    begun = links.where((F.col("role") == "circuit") & (F.col("direction") == "outgoing") & F.col("path").isNotNull())
    begun = begun.where((F.col("ingress") == F.col("node")) | F.col("ingress").isNull())
    known = begun.select(*CIRCUIT, "address", "egress", "path", "opened_us", "closed_us", ENDED_US, WAS_THERE)
    moved = _went(flows).groupBy(*CIRCUIT)
    carried = moved.agg(F.sum("messages").alias("messages"), F.sum("size_bytes").alias("size_bytes"))
    loaded = known.join(carried, list(CIRCUIT), "left")
    there = loaded.where(F.col(WAS_THERE) | F.col("messages").isNotNull()).drop(WAS_THERE)
    until = there.withColumn(ENDED_US, F.coalesce(ENDED_US, F.lit(END_US)))
    joined = until.join(cheapest, ["node", "egress"], "left") if cheapest is not None else _with_told(until, said)
    priced = joined.join(_priced(joined, _changes(_told_costs(said), "cost")), list(CIRCUIT), "left").drop(ENDED_US)
    is_other = F.col("path") != F.col("cheapest")
    # A path of the same cost as the cheapest is no detour; another path counts as a detour if a cost is unknown.
    costs_more = F.coalesce(F.col("cost") > F.col("cheapest_cost"), F.lit(True))
    return priced.withColumn("is_detour", F.coalesce(is_other & costs_more, F.lit(False)))


def _with_told(circuits: DataFrame, said: DataFrame) -> DataFrame:
    """Add to each circuit the cheapest path to the circuit's egress, and the cost of this path, as the ingress router
    recorded them.

    The last record until the circuit's end counts; without one, the first later record.
    """
    told = said.where((F.col("kind") == RecordKind.PATH.value) & (F.col("event") != RecordEvent.CLOSED.value))
    paths = told.select("node", "egress", "at_us", F.struct("path", "cost").alias("way"))
    asked = circuits.select(*CIRCUIT, "egress", ENDED_US)
    then = _as_of(asked, _changes(paths, "way"), ["node", "egress"], "way").select(
        *CIRCUIT, F.col("way.path").alias("cheapest"), F.col("way.cost").alias("cheapest_cost")
    )
    return circuits.join(then, list(CIRCUIT), "left")


def _changes(told: DataFrame, name: str) -> DataFrame:
    """Return the rows of ``told`` in which the value of column ``name`` is another than in the row before.

    So repeats in the snapshots of files are dropped.
    """
    of_one = Window.partitionBy(*(each for each in told.columns if each not in ("at_us", name))).orderBy("at_us")
    is_same = F.col(name).eqNullSafe(F.lag(name).over(of_one)) & (F.row_number().over(of_one) > 1)
    return told.withColumn("is_same", is_same).where(~F.col("is_same")).drop("is_same")


def _as_of(asked: DataFrame, told: DataFrame, on: Sequence[str], name: str) -> DataFrame:
    """Add to the rows of ``asked`` the last value of column ``name`` in ``told`` that was recorded until ENDED_US.

    Without such a record, the first later value is taken, as it probably held before there were records.
    """
    before = F.when(F.col("at_us") <= F.col(ENDED_US), F.col("at_us"))
    found = F.coalesce(F.max_by(name, before), F.min_by(name, "at_us")).alias(name)
    return asked.join(told, list(on), "left").groupBy(*asked.columns).agg(found)


def costs(said: DataFrame) -> DataFrame:
    """Return the cost from each router to each neighbor, as last recorded."""
    return _told_costs(said).groupBy("node", "neighbor").agg(F.max_by("cost", "at_us").alias("cost"))


def _told_costs(said: DataFrame) -> DataFrame:
    told = said.where((F.col("kind") == RecordKind.NEIGHBOR.value) & F.col("cost").isNotNull())
    return told.select("node", "neighbor", "at_us", "cost")


def edges(flows: DataFrame, links: DataFrame, costs: DataFrame, seconds: float) -> DataFrame:
    """Return a row from each router to each of its neighbors, with the last recorded cost and the traffic of the whole
    time.
    """
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
    """Return the cost of each circuit's path; null if the cost between two successive routers is unknown."""
    routers = F.split(F.col("path"), ">")
    whole = F.when(routers[0] == F.col("node"), routers).otherwise(F.concat(F.array("node"), routers))
    # A path with a single router gets no row here, so that its cost is null.
    ways = circuits.select(*CIRCUIT, ENDED_US, whole.alias("routers")).where(F.size("routers") > 1)
    pairs = F.arrays_zip(
        F.slice("routers", 1, F.size("routers") - 1).alias("one"),
        F.slice("routers", 2, F.size("routers")).alias("neighbor"),
    )
    steps = ways.select(*CIRCUIT, ENDED_US, F.posexplode(pairs).alias("step", "pair"))
    steps = steps.select(
        *CIRCUIT, ENDED_US, "step", F.col("pair.one").alias("one"), F.col("pair.neighbor").alias("neighbor")
    )
    known = _as_of(steps, costs.withColumnRenamed("node", "one"), ["one", "neighbor"], "cost")
    return known.groupBy(*CIRCUIT).agg(F.when(F.count("cost") == F.count("*"), F.sum("cost")).alias("cost"))

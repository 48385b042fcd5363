"""Makes the tables of shares: how evenly takers share an address, and which clients send and receive most."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay.column_expressions import US_PER_S, is_of_mesh, within
from linklogs.replay.facts import CLIENT
from linklogs.replay.presence import ENDED_US, WAS_THERE
from recording.columns import RecordOutcome

MOST_TALKERS = 100


def takers(moved: DataFrame, links: DataFrame, nodes: DataFrame, from_us: int | None, to_us: int | None) -> DataFrame:
    """Return the share of each taker of an address, and its ratio to an even share; takers that got nothing count, too.

    Brokers of a queue, and its consumers, are compared separately. A broker is one taker, however many links lead to
    it. An even share is proportional to the taker's presence (``there_s``): a taker that came late, or left, has less.
    ``from_us`` and ``to_us``: the report's time, None if nothing moved. ``moved``: totals of links over the whole time.

    Takers are links out of the mesh, to clients and to brokers. Receivers of copies get all messages, and are left out.
    So are links of brokers, for which no deliveries are recorded.
    """
    got = moved.where((F.col("side") == "out") & F.col("peer").isNotNull()).groupBy("node", "run", "link")
    taken = got.agg(F.sum("messages").alias("messages"), F.sum("size_bytes").alias("size_bytes"))
    is_taker = (F.col("direction") == "outgoing") & F.col("role").isin("consumer", "broker")
    is_shared = F.coalesce(~F.col("treatment").isin("multicast", "topic"), F.lit(True))
    brokers = nodes.where(F.col("role") == "broker").select("node").distinct()
    of_routers = links.join(F.broadcast(brokers), "node", "left_anti")
    known = of_routers.where(is_taker & is_shared & F.col("address").isNotNull() & ~is_of_mesh("address"))
    whose = known.withColumn("there_s", _there_s(from_us, to_us))
    facts = whose.select(
        "address", "treatment", "node", "run", "link", "role", "container", "user", WAS_THERE, "there_s"
    )
    # Shares are computed for each role: the brokers of a queue take the same messages that its consumers take later.
    of_address = Window.partitionBy("address", "role")
    joined = facts.join(taken, ["node", "run", "link"], "left").fillna(0, ["messages", "size_bytes"])
    there = _by_taker(joined.where(F.col(WAS_THERE) | (F.col("messages") > 0)))
    counted = there.withColumn("takers", F.count("*").over(of_address))
    share = F.try_divide(F.col("messages"), F.sum("messages").over(of_address))
    times = F.sum("there_s").over(of_address) / F.col("there_s")
    return counted.withColumn("share", share).withColumn("times_even", F.col("share") * times)


def _there_s(from_us: int | None, to_us: int | None) -> Column:
    """Return the seconds for which a link existed in the report's time, at least 1, so that a short-lived link
    counts.
    """
    if from_us is None or to_us is None:
        return F.lit(1.0)
    begins = F.greatest(F.coalesce("opened_us", F.lit(from_us)), F.lit(from_us))
    ends = F.least(F.coalesce(ENDED_US, F.lit(to_us)), F.lit(to_us))
    return F.greatest(F.lit(1.0), (ends - begins) / US_PER_S)


def _by_taker(links: DataFrame) -> DataFrame:
    """Join the links of a broker to one taker, since routers attach a link for each producer; other links stay
    single.
    """
    own = F.when(F.col("role") != "broker", F.struct("node", "run", "link")).alias("own")
    node = F.when(F.count_distinct("node") == 1, F.min("node")).alias("node")
    alone = [F.when(F.count("*") == 1, F.min(name)).alias(name) for name in ("run", "link")]
    sums = [F.sum(name).alias(name) for name in ("messages", "size_bytes")]
    there_s = F.max("there_s").alias("there_s")
    by_taker = links.groupBy("address", "treatment", "role", "container", "user", own)
    return by_taker.agg(node, *alone, *sums, there_s).drop("own")


def talkers(moved: DataFrame, links: DataFrame) -> DataFrame:
    """Return the clients that sent most, and those that received most; links of one container, user and host are one
    client.

    The port is cut off from the remote address; in redacted logs, host and port are hashes.
    """
    host = F.regexp_replace("remote_address", r":[0-9a-f]+$", "").alias("host")
    whose = links.select("node", "run", "link", "container", "user", "remote_address")
    rows = moved.where(F.col("peer") == CLIENT).join(F.broadcast(whose), ["node", "run", "link"])
    by_client = rows.groupBy("side", "container", "user", host).agg(
        F.sum("messages").alias("messages"), F.sum("size_bytes").alias("size_bytes")
    )
    of_side = Window.partitionBy("side")
    ranked = by_client.withColumn("share", F.col("messages") / F.sum("messages").over(of_side)).withColumn(
        "rank",
        F.row_number().over(of_side.orderBy(F.desc("messages"), F.desc("size_bytes"), "container", "user", "host")),
    )
    return ranked.where(F.col("rank") <= MOST_TALKERS)


def peers(connections: DataFrame, span: TimeSpan) -> DataFrame:
    """Return the containers connected to each node, with the number of connections; ``closed`` counts the connections
    closed in the time of the report.
    """
    closed_us = F.when(within(F.col("closed_us"), span), F.col("closed_us"))
    return connections.groupBy("node", "role", "container").agg(
        F.count("*").alias("connections"),
        F.count(closed_us).alias("closed"),
        F.count_distinct("user").alias("users"),
        F.min("opened_us").alias("first_us"),
        F.max("opened_us").alias("last_us"),
        F.max_by("cause", closed_us).alias("last_cause"),
    )


def noteworthy(flows: DataFrame, links: DataFrame, most: int) -> DataFrame:
    """Return the latest failed deliveries, without released ones, summed by window, links and outcome.

    The table has at most ``most`` rows.
    """
    of_note = flows.where((F.col("side") == "pair") & (F.col("what") != RecordOutcome.RELEASED.value))
    named = of_note.withColumnsRenamed({"link": "incoming", "other": "outgoing", "what": "outcome"})
    rows = named.groupBy("window", "node", "run", "incoming", "outgoing", "outcome").agg(
        F.sum("messages").alias("messages"),
        F.sum("size_bytes").alias("size_bytes"),
        F.max("max_us").alias("max_us"),
    )
    latest = rows.orderBy(F.desc("window"), F.desc("messages")).limit(most)
    facts = links.select("node", "run", F.col("link").alias("incoming"), "address", "role", "container", "user")
    return latest.join(F.broadcast(facts), ["node", "run", "incoming"], "left").withColumn(
        "window", F.timestamp_micros("window")
    )

"""Makes the tables of entities (the nodes, connections, links and queues of which records speak), with a row for each.

A fact is the last value of a column in the entity's records. `opened_us` is null if no record has the opening, since
the entity was older than the records; `closed_us` is null if no record has the end.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from recording.columns import RecordEvent, RecordKind

CONNECTION_FACTS = ("role", "container", "user", "remote_address")
LINK_FACTS = (
    "connection",
    "role",
    "direction",
    "container",
    "user",
    "remote_address",
    "address",
    "treatment",
    "name",
    "ingress",
    "egress",
    "path",
)
QUEUE_FACTS = ("address", "name")
NODE_FACTS = ("role", "version", "topology")


def connections(said: DataFrame) -> DataFrame:
    return _things(said, RecordKind.CONNECTION, ("node", "run", "connection"), CONNECTION_FACTS)


def links(said: DataFrame) -> DataFrame:
    """Return a row for each link; a fact that the link's records lack is taken from its connection.

    Column `beyond`: the container-id at the other end of the link's connection; it names a node of the mesh even if the
    container-ids of links are redacted.
    """
    of_connection = connections(said).select(
        "node", "run", "connection", *(F.col(name).alias(f"connection_{name}") for name in CONNECTION_FACTS)
    )
    alone = _things(said, RecordKind.LINK, ("node", "run", "link"), LINK_FACTS)
    joined = alone.join(F.broadcast(of_connection), ["node", "run", "connection"], "left")
    joined = joined.withColumn("beyond", F.coalesce("connection_container", "container"))
    for name in CONNECTION_FACTS[1:]:
        joined = joined.withColumn(name, F.coalesce(name, f"connection_{name}")).drop(f"connection_{name}")
    return joined


def queues(said: DataFrame) -> DataFrame:
    return _things(said, RecordKind.QUEUE, ("node", "run", "queue"), QUEUE_FACTS)


def nodes(said: DataFrame) -> DataFrame:
    """Return a row for each run of a node, with role, version, topology, and times and cause of start and end."""
    return _things(said, RecordKind.NODE, ("node", "run"), NODE_FACTS)


def _things(said: DataFrame, kind: RecordKind, keys: tuple[str, ...], facts: tuple[str, ...]) -> DataFrame:
    return (
        said.where((F.col("kind") == kind.value) & F.col(keys[-1]).isNotNull())
        .groupBy(*keys)
        .agg(
            *(_last(name).alias(name) for name in facts),
            F.min(_when(RecordEvent.OPENED)).alias("opened_us"),
            F.max(_when(RecordEvent.CLOSED)).alias("closed_us"),
            F.max_by("cause", _when(RecordEvent.CLOSED)).alias("cause"),
        )
    )


def _last(name: str) -> Column:
    return F.max_by(name, F.when(F.col(name).isNotNull(), F.col("at_us")))


def _when(event: RecordEvent) -> Column:
    return F.when(F.col("event") == event.value, F.col("at_us"))

"""Settings of a report whose work is done by the executors of a cluster, in a session of spark-submit or ours."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linklogs.session import ALWAYS, RECORDS_OF_A_PARTITION

DRIVER_MEMORY = "3g"
"""Of a driver that is started here. Result tables go through it, and so do small ones that all executors get."""

MEANT = ("spark.sql.session.timeZone", "spark.sql.sources.partitionColumnTypeInference.enabled")
"""With others, records would be read as something else."""


def is_cluster(master: str | None) -> bool:
    return master is not None and not master.startswith("local")


def settings(records: int | None) -> dict[str, str]:
    """For a session that is opened here; ``records``: about how many, None where nobody knows."""
    # Where a cluster has no room for executors, a warning is all that Spark says of it.
    return {"spark.driver.memory": DRIVER_MEMORY, "spark.log.level": "WARN", **_partitions(records)}


def submitted_session(records: int | None) -> SparkSession:
    """That of spark-submit. What was given to it stays; its pages and its log are of who submits."""
    session = SparkSession.builder.getOrCreate()
    given = session.sparkContext.getConf()
    for name, value in {**ALWAYS, **_partitions(records)}.items():
        if name in MEANT or (name.startswith("spark.sql.") and not given.contains(name)):
            session.conf.set(name, value)
    return session


def _partitions(records: int | None) -> dict[str, str]:
    """So many that each fits into memory. Nothing where nobody counted: Spark's own default then, of which small
    ones become one.
    """
    if records is None:
        return {}
    return {"spark.sql.shuffle.partitions": str(4 + records // RECORDS_OF_A_PARTITION)}

"""Settings of a report whose work is done by the executors of a cluster, in a session of spark-submit or ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from linklogs.packing import pack
from linklogs.session import ALWAYS

DRIVER_MEMORY = "3g"
"""Of a driver that is started here. Result tables go through it, and so do small ones that all executors get."""

MEANT = ("spark.sql.session.timeZone", "spark.sql.sources.partitionColumnTypeInference.enabled")
"""With others, records would be read as something else."""


def is_cluster(master: str | None) -> bool:
    return master is not None and not master.startswith("local")


def settings() -> dict[str, str]:
    """For a session that is opened here."""
    # Where a cluster has no room for executors, a warning is all that Spark says of it.
    return {"spark.driver.memory": DRIVER_MEMORY, "spark.log.level": "WARN"}


@contextmanager
def modules_given(spark: SparkSession) -> Iterator[None]:
    """As long as it lasts executors get what they need of amqpmesh, as with ``--py-files`` of spark-submit."""
    with TemporaryDirectory() as folder:
        spark.sparkContext.addPyFile(str(pack(Path(folder)).archive))
        yield


def submitted_session() -> SparkSession:
    """That of spark-submit. What was given to it stays; its pages and its log are of who submits."""
    session = SparkSession.builder.getOrCreate()
    given = session.sparkContext.getConf()
    for name, value in ALWAYS.items():
        if name in MEANT or (name.startswith("spark.sql.") and not given.contains(name)):
            session.conf.set(name, value)
    return session

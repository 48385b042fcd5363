"""Settings of a report whose work is done by the executors of a cluster, in a session of spark-submit or ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from linklogs.job_archive import pack
from linklogs.session import ALWAYS

DRIVER_MEMORY = "3g"
"""Memory of a driver started here. Result tables go through the driver, and small tables for all executors."""

MEANT = ("spark.sql.session.timeZone", "spark.sql.sources.partitionColumnTypeInference.enabled")
"""With other values of these settings, records would be misread."""


def is_cluster(master: str | None) -> bool:
    return master is not None and not master.startswith("local")


def settings() -> dict[str, str]:
    """Settings of a session opened here."""
    # A cluster without room for executors shows only as a warning of Spark.
    return {"spark.driver.memory": DRIVER_MEMORY, "spark.log.level": "WARN"}


@contextmanager
def modules_given(spark: SparkSession) -> Iterator[None]:
    """While the context lasts executors get the modules of amqpmesh, as with ``--py-files`` of spark-submit."""
    with TemporaryDirectory() as folder:
        spark.sparkContext.addPyFile(str(pack(Path(folder)).archive))
        yield


def submitted_session() -> SparkSession:
    """The session of spark-submit, whose settings win; web page and log are the submitter's business."""
    session = SparkSession.builder.getOrCreate()
    given = session.sparkContext.getConf()
    for name, value in ALWAYS.items():
        if name in MEANT or (name.startswith("spark.sql.") and not given.contains(name)):
            session.conf.set(name, value)
    return session

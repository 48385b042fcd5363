"""Spark settings of a report that runs on the executors of a cluster.

The Spark session is the session of spark-submit, or is opened by amqpmesh itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from linklogs.job_archive import pack
from linklogs.session import ALWAYS, name_classes

DRIVER_MEMORY = "3g"
"""Memory of Spark's driver, if amqpmesh starts the driver.

All result tables, and the small tables that every executor gets, go through the driver.
"""

MEANT = ("spark.sql.session.timeZone", "spark.sql.sources.partitionColumnTypeInference.enabled")
"""Settings that are taken from ALWAYS even if spark-submit has other values: with these, records would be misread."""


def is_cluster(master: str | None) -> bool:
    return master is not None and not master.startswith("local")


def settings() -> dict[str, str]:
    """Return the Spark settings for a session on a cluster that amqpmesh opens; a session of spark-submit gets none of
    these.
    """
    # Spark logs warnings, too, since a warning is all that Spark says about a cluster without room for executors.
    return {"spark.driver.memory": DRIVER_MEMORY, "spark.log.level": "WARN"}


@contextmanager
def modules_given(spark: SparkSession) -> Iterator[None]:
    """Let Spark's executors fetch the modules of the report while the context lasts, as ``--py-files`` would."""
    with TemporaryDirectory() as folder:
        spark.sparkContext.addPyFile(str(pack(Path(folder)).archive))
        yield


def submitted_session() -> SparkSession:
    """Return the session of spark-submit, with our settings of Spark SQL added where the submitter gave none.

    Settings that the submitter gave stay, except those in MEANT. The web page and the log level stay in any case.
    """
    session = SparkSession.builder.getOrCreate()
    given = session.sparkContext.getConf()
    for name, value in ALWAYS.items():
        if name in MEANT or (name.startswith("spark.sql.") and not given.contains(name)):
            session.conf.set(name, value)
    name_classes(session)
    return session

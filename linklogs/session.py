"""Opens the Spark session of a report: few log lines, no web page, and with a local master no port beyond localhost."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Java compiles quickly, not well: all long work is done in Python workers, so little Java code runs for long.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
}
"""Settings for a local master, which runs the whole job on this machine."""

ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Files of link logs are small: with Spark's 4 MiB for opening a file, each of thousands of files would be a task.
    "spark.sql.files.openCostInBytes": "262144",
    # Spark compiles no query plan, since compiling takes longer than making a table of a few thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    # Spark joins by sending tables of links and connections (up to 256 MiB) to all workers, not by a shuffle of the
    # traffic.
    "spark.sql.autoBroadcastJoinThreshold": "268435456",
}
"""Settings for every master."""


def open_session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Open a Spark session with ``master`` and the settings of this module, over which ``conf`` wins.

    ``master`` None: the master given to spark-submit.
    """
    is_local = master is not None and master.startswith("local")
    if is_local:
        # Spark's workers use the Python of this process: the first python3 on the PATH may lack our libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**ALWAYS, **(LOCAL if is_local else {}), **conf}
    builder = SparkSession.builder.appName("amqpmesh report")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

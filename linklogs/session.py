"""A Spark session for reports: quiet, without a web page, and bound to this machine if it runs here alone."""

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
    # All long work is done in workers: here, code that starts soon beats code that runs fast.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
}
"""For a master in this process."""

ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A file of a link log is small: weighed as 4 MiB, thousands of files would be a task each.
    "spark.sql.files.openCostInBytes": "262144",
    # Compiling takes longer than making a table of a few thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    # Tables of links and connections are never worth a shuffle of the traffic.
    "spark.sql.autoBroadcastJoinThreshold": "268435456",
}


def open_session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """``master`` None: as spark-submit says. ``conf`` wins over the settings here."""
    is_local = master is not None and master.startswith("local")
    if is_local:
        # Otherwise workers use the first python3 on the PATH, which may lack our libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**ALWAYS, **(LOCAL if is_local else {}), **conf}
    builder = SparkSession.builder.appName("amqpmesh report")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

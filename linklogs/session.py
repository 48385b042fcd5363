"""A Spark session that fits a report: quiet, without a web page, and bound to this machine if it runs on it alone."""

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
    # All that is long runs in workers: here, code that is ready soon beats code that is fast.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
}
"""For a master in this very process."""

ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A file of a link log is small: weighed as 4 MiB, thousands of them would be a task each.
    "spark.sql.files.openCostInBytes": "262144",
    # To compile a table of a few thousand rows takes longer than to make it.
    "spark.sql.codegen.wholeStage": "false",
    # Tables of links and connections are never worth a shuffle of the traffic.
    "spark.sql.autoBroadcastJoinThreshold": "268435456",
}


def open_session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """``master`` None: whatever spark-submit says. ``conf`` wins over what is set here."""
    is_local = master is not None and master.startswith("local")
    if is_local:
        # Else workers are of whatever python3 comes first on the PATH, which may have none of our libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**ALWAYS, **(LOCAL if is_local else {}), **conf}
    builder = SparkSession.builder.appName("amqpmesh report")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

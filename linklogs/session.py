"""Opens the Spark session of a report: few log lines, no web page, and with a local master no port beyond localhost."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from py4j.java_gateway import java_import
from pyspark.sql import SparkSession

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Plans as text are for the web page, which a report on this machine does not have.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
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
    # Nobody reads in which line each column expression was made: to note it takes half of pyspark's own time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark compiles no query plan, since compiling takes longer than making a table of a few thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    # Spark joins by sending tables of links and connections (up to 256 MiB) to all workers, not by a shuffle of the
    # traffic.
    "spark.sql.autoBroadcastJoinThreshold": "268435456",
}
"""Settings for every master."""

NAMED = ("org.apache.spark.sql.functions", "org.apache.spark.api.python.PythonUtils")
"""The classes of Spark that pyspark names without their packages in functions of columns."""


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
    session = builder.getOrCreate()
    name_classes(session)
    return session


def name_classes(session: SparkSession) -> None:
    """Import by name the classes for which each column expression asks Java.

    Spark imports only their packages, so Java would look for each class in one package after the other, in all archives
    of Spark, at every single expression.
    """
    jvm = session.sparkContext._jvm
    for name in NAMED:
        java_import(jvm, name)

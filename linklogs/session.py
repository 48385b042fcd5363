"""A Spark session that fits a report: quiet, without a web page, and bound to this machine if it runs on it alone."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.default.parallelism": "2",
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
    # Below so many groups of one task at a time they stay in memory, unsorted.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "65536",
    # Tables of links and connections are never worth a shuffle of the traffic.
    "spark.sql.autoBroadcastJoinThreshold": "268435456",
}


FEW_RECORDS = 3_000_000
RECORDS_OF_A_PARTITION = 2_000_000


def open_session(master: str | None, conf: Mapping[str, str], records: int | None = None) -> SparkSession:
    """``master`` None: whatever spark-submit says. ``conf`` wins over what is set here; ``records``: about how many."""
    is_local = master is not None and master.startswith("local")
    settings = {**ALWAYS, **(LOCAL if is_local else {}), **(_sized(records) if is_local else {}), **conf}
    builder = SparkSession.builder.appName("amqpmesh report")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _sized(records: int | None) -> dict[str, str]:
    """Partitions that fit into memory; of few records, code that is ready soon instead of code that is fast."""
    is_few = records is not None and records <= FEW_RECORDS
    return {
        "spark.sql.shuffle.partitions": str(4 + (records or 0) // RECORDS_OF_A_PARTITION),
        # Nobody waits for a pause of this collector, and it takes less of the cores than the usual one.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC" + (" -XX:TieredStopAtLevel=1" if is_few else ""),
    }

"""The files of link logs as one DataFrame of Spark, for linklogs/replay/files.py to read in Spark's workers.

A worker gets a local file as a path, and opens the file: handing the file's octets over through Java takes as long as
reading the file. Files elsewhere, such as in HDFS, are read by Spark, and handed over as octets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy
import pyarrow
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.failures import said
from linklogs.file_holds import is_local, local_path
from linklogs.log_search import (
    EXPECTED,
    HOUR,
    NODE,
    SUFFIX,
    UNSEEN,
    FoundLogs,
    LogFile,
    NoLogs,
    find,
    is_hour,
    no_hour,
    not_a_directory,
)
from linklogs.moments import TimeSpan

TASK_BYTES: Final = 128 << 20
"""The most bytes of local files in one task of Spark, about."""
OPENED_BYTES: Final = 256 << 10
"""Opening a file takes as long as reading this many bytes, which count in the weight of a file."""
MOST_LOOKED_AT: Final = 100
"""The most directories of nodes that are listed to find foreign content; others are not looked at.

Each listing is a request to a server.
"""


@dataclass(frozen=True, slots=True)
class InputLogs:
    """The link logs to read for a report.

    ``found``: the files found at a path on this machine; None for a remote path, which only Spark can list.
    """

    path: str
    span: TimeSpan
    found: FoundLogs | None

    @property
    def notices(self) -> tuple[str, ...]:
        return self.found.notices if self.found is not None else ()


def look(path: str, span: TimeSpan) -> InputLogs:
    """Find the link logs at a local path without Spark, or raise NoLogs if there are none.

    A remote path is not looked at: `files` lists it with Spark later.
    """
    if not is_local(path):
        return InputLogs(path, span, None)
    local = local_path(path)
    return InputLogs(local, span, find(local, span))


def files(spark: SparkSession, logs: InputLogs) -> DataFrame:
    """Return a table of files that can hold records of the requested time: node, path, size_bytes and content.

    ``content`` is null for a local file, which a worker opens. Names of nodes stay text, even `007`.

    Raise NoLogs for a remote path that is unreadable or has no link logs.
    """
    return _named(spark, logs.found.files) if logs.found is not None else _by_spark(spark, logs)


def _named(spark: SparkSession, found: Sequence[LogFile]) -> DataFrame:
    """Return the table of local files, cut into tasks of Spark.

    Each task gets files that follow one another, and about as much work as any other task.
    """
    weights = numpy.array([each.size_bytes + OPENED_BYTES for each in found], numpy.int64)
    cores = spark.sparkContext.defaultParallelism
    tasks = -(-int(weights.sum()) // (TASK_BYTES * cores)) * cores
    middles = numpy.cumsum(weights) - weights / 2
    columns = {
        "node": pyarrow.array([each.node for each in found], pyarrow.string()),
        "path": pyarrow.array([each.path for each in found], pyarrow.string()),
        "size_bytes": pyarrow.array([each.size_bytes for each in found], pyarrow.int64()),
        "content": pyarrow.nulls(len(found), pyarrow.binary()),
        "task": pyarrow.array((middles * (tasks / weights.sum())).astype(numpy.int32)),
    }
    return spark.createDataFrame(pyarrow.table(columns)).repartitionById(tasks, "task").drop("task")


def _by_spark(spark: SparkSession, logs: InputLogs) -> DataFrame:
    """Return the table of remote files, whose octets Spark reads.

    Spark gets a pattern for the directories of link logs only: Spark would read nothing of a tree with other content.
    """
    where = f"{logs.path.rstrip('/')}/{NODE}*/{HOUR}*"
    reader = spark.read.format("binaryFile").option("basePath", logs.path).option("pathGlobFilter", f"*{SUFFIX}")
    try:
        if not any(name.startswith(NODE) for name in names_in(spark, logs.path)):
            raise NoLogs(f"no link logs in {logs.path}: expected {EXPECTED}")
        found = reader.load(where)
        if not {"node", "hour"} <= set(found.columns):
            raise NoLogs(f"no link logs in {logs.path}: expected {EXPECTED}")
        return found.where(_hours(logs.span)).select("node", "path", F.col("length").alias("size_bytes"), "content")
    except (PySparkException, Py4JJavaError) as error:
        raise NoLogs(f"{logs.path} cannot be read: {said(error)}") from None


def foreign(spark: SparkSession, logs: InputLogs) -> Iterator[str]:
    """Yield a sentence for each entry of a remote directory of link logs that is no directory of a node, and for each
    entry of a node's directory that is no directory of an hour, or cannot be listed.

    Only the first MOST_LOOKED_AT (100) directories of nodes are looked at. For a local path, yield nothing:
    ``FoundLogs.notices`` has these sentences. Unreadable files are reported by the workers that read them.
    """
    if logs.found is not None:
        return
    nodes = []
    for name in _seen(names_in(spark, logs.path)):
        if name.startswith(NODE):
            nodes.append(f"{logs.path.rstrip('/')}/{name}")
        else:
            yield not_a_directory(f"{logs.path.rstrip('/')}/{name}", NODE)
    for node in nodes[:MOST_LOOKED_AT]:
        yield from _foreign_of(spark, node)


def _foreign_of(spark: SparkSession, node: str) -> Iterator[str]:
    try:
        names = _seen(names_in(spark, node))
    except Py4JJavaError as error:
        yield f"{node} cannot be read: {said(error)}"
        return
    for name in names:
        if not name.startswith(HOUR):
            yield not_a_directory(f"{node}/{name}", HOUR)
        elif not is_hour(name.removeprefix(HOUR)):
            yield no_hour(f"{node}/{name}")


def _seen(names: list[str]) -> list[str]:
    return [name for name in names if name[0] not in UNSEEN]


def names_in(spark: SparkSession, path: str) -> list[str]:
    """Return the sorted names in a directory, listed by Hadoop. Raises the error of Java if listing fails."""
    java: Any = spark.sparkContext._jvm
    hadoop_path = java.org.apache.hadoop.fs.Path(path)
    settings: Any = spark._jsparkSession.sessionState().newHadoopConf()
    files = hadoop_path.getFileSystem(settings)
    return sorted(status.getPath().getName() for status in files.listStatus(hadoop_path))


def _hours(span: TimeSpan) -> Column:
    """Return a condition on column ``hour`` by which Spark skips directories without records of the requested time.

    The condition is true for hours that may hold such records, and false for names that are no hour.
    """
    began = F.unix_micros(F.try_to_timestamp(F.col("hour"), F.lit("yyyy-MM-dd'T'HH")))
    is_late_enough = F.lit(True) if span.from_us is None else began + 2 * 3_600_000_000 > span.from_us
    is_in_time = is_late_enough if span.to_us is None else is_late_enough & (began < span.to_us)
    return began.isNotNull() & is_in_time

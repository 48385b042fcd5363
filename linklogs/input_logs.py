"""The files of link logs as one DataFrame, wherever they are, for linklogs/replay/files.py to read.

Workers open local files, which all workers have, by themselves: handing octets over through Java takes as long as
reading them.
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
OPENED_BYTES: Final = 256 << 10
"""Opening a file takes as long as reading this many bytes."""
MOST_LOOKED_AT: Final = 100
"""Directories of nodes to look into: each look is a question to a server."""


@dataclass(frozen=True, slots=True)
class InputLogs:
    """The logs to read. ``found`` is None if only Spark can look."""

    path: str
    span: TimeSpan
    found: FoundLogs | None

    @property
    def notices(self) -> tuple[str, ...]:
        return self.found.notices if self.found is not None else ()


def look(path: str, span: TimeSpan) -> InputLogs:
    """Find the logs without Spark. Raise NoLogs if nothing can be read."""
    if not is_local(path):
        return InputLogs(path, span, None)
    local = local_path(path)
    return InputLogs(local, span, find(local, span))


def files(spark: SparkSession, logs: InputLogs) -> DataFrame:
    """Columns node, path, size_bytes and content: a row for each file that can hold records of the time.

    ``content`` is null if a worker opens the path itself. Names of nodes stay text, even `007`. Raise NoLogs for an
    unreadable path.
    """
    return _named(spark, logs.found.files) if logs.found is not None else _by_spark(spark, logs)


def _named(spark: SparkSession, found: Sequence[LogFile]) -> DataFrame:
    """Each task gets neighboring files, and about as much work as any other task."""
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
    """Read remote files through Spark, which hands over the octets.

    Spark gets exact directories: of a tree with anything else inside, Spark would read nothing.
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
    """A sentence for each thing left out if only Spark can look; the reader reports on files."""
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
    """Names of the entries of a directory, by Hadoop. Raises the error of Java if listing fails."""
    java: Any = spark.sparkContext._jvm
    hadoop_path = java.org.apache.hadoop.fs.Path(path)
    settings: Any = spark._jsparkSession.sessionState().newHadoopConf()
    files = hadoop_path.getFileSystem(settings)
    return sorted(status.getPath().getName() for status in files.listStatus(hadoop_path))


def _hours(span: TimeSpan) -> Column:
    """True for directories that may hold records of the time, false for names that are no hour; prunes directories."""
    began = F.unix_micros(F.try_to_timestamp(F.col("hour"), F.lit("yyyy-MM-dd'T'HH")))
    is_late_enough = F.lit(True) if span.from_us is None else began + 2 * 3_600_000_000 > span.from_us
    is_in_time = is_late_enough if span.to_us is None else is_late_enough & (began < span.to_us)
    return began.isNotNull() & is_in_time

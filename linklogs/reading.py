"""The files of link logs as one DataFrame, wherever they are, for linklogs/replay/files.py to read.

Of a path of this machine, which all workers have, too, they open the files themselves: to hand octets over through Java
takes as long as to read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.finding import SUFFIX, Found, LogFile, NoLogs, find
from linklogs.holding import is_local, local_path
from linklogs.moments import Span

TASK_BYTES: Final = 128 << 20
OPENED_BYTES: Final = 256 << 10
"""To open a file takes as long as to read so much of it."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What will be read. ``found`` is None where only Spark can look."""

    path: str
    span: Span
    found: Found | None

    @property
    def notices(self) -> tuple[str, ...]:
        return self.found.notices if self.found is not None else ()


def look(path: str, span: Span) -> Logs:
    """Needs no Spark. Raise NoLogs where nothing can be read."""
    if not is_local(path):
        return Logs(path, span, None)
    local = local_path(path)
    return Logs(local, span, find(local, span))


def files(spark: SparkSession, logs: Logs) -> DataFrame:
    """Columns node, path, size_bytes and content: a row for each file that can hold records of the time.

    ``content`` is null where a worker opens the path itself. Names of nodes stay text, `007` too. Raise NoLogs for a
    path that cannot be read.
    """
    return _named(spark, logs.found.files) if logs.found is not None else _by_spark(spark, logs)


def _named(spark: SparkSession, found: Sequence[LogFile]) -> DataFrame:
    """Each task gets files that lie beside each other, and as much to do as any other."""
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


def _by_spark(spark: SparkSession, logs: Logs) -> DataFrame:
    """What lies elsewhere only Spark can open, so it hands over the octets."""
    reader = spark.read.format("binaryFile").option("basePath", logs.path).option("pathGlobFilter", f"*{SUFFIX}")
    try:
        found = reader.load(logs.path).where(_hours(logs.span))
        return found.select("node", "path", F.col("length").alias("size_bytes"), "content")
    except AnalysisException as error:
        raise NoLogs(f"{logs.path} cannot be read: {str(error).splitlines()[0]}") from None


def _hours(span: Span) -> Column:
    """True for directories that may hold records of the time; Spark prunes by it."""
    began = F.unix_micros(F.to_timestamp(F.col("hour"), "yyyy-MM-dd'T'HH"))
    is_late_enough = F.lit(True) if span.from_us is None else began + 2 * 3_600_000_000 > span.from_us
    return is_late_enough if span.to_us is None else is_late_enough & (began < span.to_us)

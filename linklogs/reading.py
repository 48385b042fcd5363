"""The files of link logs as one DataFrame, wherever they are: their octets, for linklogs/replay/files.py to read."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.finding import SUFFIX, Found, NoLogs, find
from linklogs.holding import is_local, local_path
from linklogs.moments import Span


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
    """Columns node, hour, path and content, of directories that can hold records of the time.

    Names of nodes stay text, `007` too. Raise NoLogs for a path that cannot be read.
    """
    reader = spark.read.format("binaryFile").option("basePath", logs.path).option("pathGlobFilter", f"*{SUFFIX}")
    try:
        if logs.found is None:
            rows = reader.load(logs.path).where(_hours(logs.span))
        else:
            rows = reader.load([f"file://{path}" for path in logs.found.paths()])
        return rows.select("node", "hour", "path", "content")
    except AnalysisException as error:
        raise NoLogs(f"{logs.path} cannot be read: {str(error).splitlines()[0]}") from None


def _hours(span: Span) -> Column:
    """True for directories that may hold records of the time; Spark prunes by it."""
    began = F.unix_micros(F.to_timestamp(F.col("hour"), "yyyy-MM-dd'T'HH"))
    is_late_enough = F.lit(True) if span.from_us is None else began + 2 * 3_600_000_000 > span.from_us
    return is_late_enough if span.to_us is None else is_late_enough & (began < span.to_us)

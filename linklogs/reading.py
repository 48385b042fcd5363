"""The records of link logs as one DataFrame, whatever mixture of versions and places the files are of."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from addressing.link_log import COLUMNS
from linklogs.finding import Found, NoLogs, find
from linklogs.holding import is_local, local_path
from linklogs.moments import Span

TYPES = {"string": StringType(), "int64": LongType()}
PLACES = ("node", "hour")
"""What directories say of all files below them."""

SCHEMA = StructType(
    [
        *(StructField(column.name, TYPES[column.type]) for column in COLUMNS),
        *(StructField(name, StringType()) for name in PLACES),
    ]
)
"""A column that a file lacks is null in its records. Names of nodes stay text, `007` too."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What will be read. ``found`` is None where only Spark can look: a torn file then ends the report."""

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


def records(spark: SparkSession, logs: Logs) -> DataFrame:
    """All columns of the schema, node and hour; of directories that can hold records of the time.

    Rows are not cut to that time: what was open when it began is told before it. Raise NoLogs for an empty path.
    """
    reader = spark.read.schema(SCHEMA).option("basePath", logs.path)
    found = logs.found
    try:
        if found is None:
            return reader.parquet(logs.path).where(_hours(logs.span))
        rows = reader.parquet(*_urls(found.paths()))
        # Spark has listed them by now. What was merged since it was found would be read twice.
        return rows if found.is_unchanged() else reader.parquet(*_urls(found.files()))
    except AnalysisException as error:
        raise NoLogs(f"{logs.path} cannot be read: {str(error).splitlines()[0]}") from None


def _urls(paths: list[str]) -> list[str]:
    return [f"file://{path}" for path in paths]


def _hours(span: Span) -> Column:
    """True for directories that may hold records of the time; Spark prunes by it."""
    began = F.unix_micros(F.to_timestamp(F.col("hour"), "yyyy-MM-dd'T'HH"))
    is_late_enough = F.lit(True) if span.from_us is None else began + 2 * 3_600_000_000 > span.from_us
    return is_late_enough if span.to_us is None else is_late_enough & (began < span.to_us)

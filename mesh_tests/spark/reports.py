"""A report of small logs, and rows of its tables."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from linklogs.input_logs import look
from linklogs.moments import TimeSpan
from linklogs.replay.run import Params, Tables, run
from mesh_tests.link_logs import RUN, START_US, S, connection, link, node

WINDOW_US = 10 * S
PRODUCER = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a")]


def at(seconds: float, kind: str, **more: Any) -> dict[str, Any]:
    """A record of the usual run."""
    return {"kind": kind, "at_us": START_US + round(seconds * S), "run": RUN, **more}


def report(spark: SparkSession, root: Path, **more: Any) -> Tables:
    span = TimeSpan(more.pop("from_us", None), more.pop("to_us", None))
    return run(spark, Params(look(str(root), span), WINDOW_US, **more))


def rows(table: DataFrame, *names: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in table.select(*names).collect()}


def only(table: DataFrame, **wanted: Any) -> Any:
    found = [row for row in table.collect() if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]

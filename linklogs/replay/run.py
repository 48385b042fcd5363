"""All tables of a report, by name, from a session and what to read. Only what all of them
share is computed here; each of them when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.reading import Logs, records
from linklogs.replay import levels
from linklogs.replay.columns import US_PER_S
from linklogs.replay.flat import MOVED, flat, without_windows
from linklogs.replay.sides import sides
from linklogs.replay.things import connections, links, nodes


@dataclass(frozen=True, slots=True)
class Params:
    """``window_us`` above 0; ``address`` a pattern of addresses to which the report is cut, None for all."""

    logs: Logs
    window_us: int
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """Of the report; None, and one window, where nothing moved."""

    from_us: int | None
    to_us: int | None
    seconds: float


@dataclass(slots=True)
class Tables:
    """``by_name`` in the order in which they are worth reading; `release` gives the memory of what they share back."""

    by_name: dict[str, DataFrame]
    time: Time
    kept: list[DataFrame] = field(default_factory=list)

    def release(self) -> None:
        for each in self.kept:
            each.unpersist()


def run(spark: SparkSession, params: Params) -> Tables:
    """Raise NoLogs where nothing can be read."""
    rows = records(spark, params.logs)
    said = _kept(rows.where(~F.col("kind").isin(*MOVED)))
    moved = _kept(flat(rows, params.window_us, params.logs.span, {}))
    whole = _kept(without_windows(moved))
    of_links, of_nodes = _kept(links(said)), nodes(said)
    time = time_of(moved, params.window_us)
    traffic = levels.in_all(sides(whole, of_links, of_nodes, params.address), time.seconds)
    over_time = levels.by_window(sides(moved, of_links, of_nodes, params.address), params.window_us)
    tables = levels.described(traffic, of_links, connections(said))
    return Tables({**tables, **over_time}, time, [said, moved, whole, of_links])


def time_of(moved: DataFrame, window_us: int) -> Time:
    """From the first window with traffic to the last."""
    found = moved.agg(F.min("window"), F.max("window"), F.sum("messages")).first()
    if found is None or found[0] is None:
        return Time(None, None, window_us / US_PER_S)
    return Time(found[0], found[1] + window_us, (found[1] + window_us - found[0]) / US_PER_S)


def _kept(table: DataFrame) -> DataFrame:
    return table.persist(StorageLevel.MEMORY_AND_DISK)

"""All tables of a report, by name, from a session and what to read. Only what all of them
share is computed here; each of them when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from linklogs.reading import Logs, records
from linklogs.replay import clocks, credit, levels, neighbors, paths, queues, runs, sharing
from linklogs.replay.columns import US_PER_S, like
from linklogs.replay.flat import MOVED, flat, without_windows
from linklogs.replay.sides import sides
from linklogs.replay.things import connections, links, nodes

MOST_NOTEWORTHY = 1000


@dataclass(frozen=True, slots=True)
class Params:
    """``window_us`` above 0; ``address`` a pattern of addresses to which the report is cut, None for all."""

    logs: Logs
    window_us: int
    address: str | None = None
    cheapest: DataFrame | None = None
    """Cheapest paths (see paths.CHEAPEST); None: those that routers told."""


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


@dataclass(frozen=True, slots=True)
class Shared:
    """What tables are made of: what was said, the flat table with windows and without, both by link, and facts."""

    said: DataFrame
    moved: DataFrame
    whole: DataFrame
    over_time: DataFrame
    in_all: DataFrame
    links: DataFrame
    nodes: DataFrame
    params: Params
    time: Time

    def traffic(self) -> dict[str, DataFrame]:
        in_all = levels.in_all(self.in_all, self.time.seconds)
        over_time = levels.by_window(self.over_time, self.params.window_us)
        described = levels.described(in_all, self.wanted_links(), connections(self.said))
        return {**described, "latency": levels.latency(self.in_all), **over_time}

    def others(self) -> dict[str, DataFrame]:
        said, moved, whole = self.said, self.moved, self.whole
        links, window_us, seconds = self.wanted_links(), self.params.window_us, self.time.seconds
        cost = paths.costs(said)
        cheapest = self.params.cheapest if self.params.cheapest is not None else paths.told_paths(said)
        of_queues = queues.things(said, self.params.address)
        return {
            "credit": credit.starved(said, links, seconds),
            "credit_by_window": credit.starved_by_window(said, links, window_us),
            "queues": queues.in_all(said, whole, of_queues),
            "queues_by_window": queues.by_window(said, moved, of_queues, window_us),
            "takers": sharing.takers(self.in_all, links),
            "talkers": sharing.talkers(self.in_all),
            "peers": sharing.peers(connections(said)),
            "outages": neighbors.outages(said, moved, window_us),
            "link_state": neighbors.history(said),
            "circuits": paths.circuits(whole, links, cheapest, cost),
            "edges": paths.edges(whole, links, cost, seconds),
            "runs": runs.runs(said, self.nodes),
            "missing": runs.missing(said, whole),
            "drops": runs.drops(said, links),
            "noteworthy": sharing.noteworthy(moved, links, MOST_NOTEWORTHY),
        }

    def wanted_links(self) -> DataFrame:
        return self.links.where(like("address", self.params.address))


def run(spark: SparkSession, params: Params) -> Tables:
    """Raise NoLogs where nothing can be read."""
    rows = records(spark, params.logs)
    told = _kept(rows.where(~F.col("kind").isin(*MOVED)))
    ahead_us = clocks.ahead_us(told)
    said = clocks.corrected(told, ahead_us)
    moved = _kept(flat(clocks.corrected(rows, ahead_us), params.window_us, params.logs.span))
    whole = _kept(without_windows(moved))
    of_links, of_nodes = _kept(links(said)), nodes(said)
    over_time, in_all = (_kept(sides(table, of_links, of_nodes, params.address)) for table in (moved, whole))
    time = time_of(moved, params.window_us)
    shared = Shared(said, moved, whole, over_time, in_all, of_links, of_nodes, params, time)
    tables = {**shared.traffic(), **shared.others(), "clocks": clocks.table(spark, ahead_us)}
    kept = [told, moved, whole, over_time, in_all, of_links]
    return Tables({name: levels.times(table) for name, table in tables.items()}, time, kept)


def time_of(moved: DataFrame, window_us: int) -> Time:
    """From the first window with traffic to the last."""
    found = moved.agg(F.min("window"), F.max("window"), F.sum("messages")).first()
    if found is None or found[0] is None:
        return Time(None, None, window_us / US_PER_S)
    return Time(found[0], found[1] + window_us, (found[1] + window_us - found[0]) / US_PER_S)


def _kept(table: DataFrame) -> DataFrame:
    return table.persist(StorageLevel.MEMORY_AND_DISK)

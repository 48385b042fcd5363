"""Has all tables of a report by name, each planned on demand, because planning a table takes Spark as long as making
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linklogs.moments import TimeSpan
from linklogs.replay import credit, endings, neighbors, paths, queues, runs, shares, traffic, unsettled
from linklogs.replay.column_expressions import US_PER_S, like, touches, within
from linklogs.replay.entities import connections
from linklogs.replay.levels import LEVELS
from linklogs.replay.presence import WAS_THERE, marked

MOST_NOTEWORTHY = 1000

Maker = Callable[[], DataFrame]


class ReportTables(Mapping[str, DataFrame]):
    """A mapping from names to tables, in the order in which tables are worth reading, with readable times."""

    def __init__(self, makers: Mapping[str, Maker]) -> None:
        self._makers = dict(makers)

    def __getitem__(self, name: str) -> DataFrame:
        return traffic.times(self._makers[name]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, slots=True)
class ReportTime:
    """The time of the report, from the first window with a movement to the last one, cut to the requested time.

    If nothing moved, ``from_us`` and ``to_us`` are None, and ``seconds`` is the length of a window.
    ``recorded``: the part of the requested time with records, which may have no movement because all links wait.
    """

    from_us: int | None
    to_us: int | None
    seconds: float
    recorded: TimeSpan

    @property
    def recorded_s(self) -> float:
        return max(self.seconds, self.recorded.length_us / US_PER_S)


@dataclass(frozen=True, slots=True)
class TableSources:
    """The data from which all tables are made: state records, rows of traffic by window and over the whole time, and
    links.

    ``address``, ``span``, ``window_us``: as requested; ``links_window_us``: the window of tables of links, which may be
    many. ``time``: the part of the span with traffic. ``off_us``: the largest error of a clock.

    ``cheapest``: cheapest paths, with columns node, egress, cheapest and cheapest_cost; None for those that routers
    recorded.
    """

    said: DataFrame
    over_time: DataFrame
    in_all: DataFrame
    links: DataFrame
    nodes: DataFrame
    address: str | None
    span: TimeSpan
    window_us: int
    links_window_us: int
    time: ReportTime
    off_us: int
    cheapest: DataFrame | None

    def planned(self, **more: Maker) -> ReportTables:
        return ReportTables({**self._traffic(), **self._others(), **more})

    def _traffic(self) -> dict[str, Maker]:
        found: dict[str, Maker] = {level.name: partial(traffic.in_all, self.in_all, level) for level in LEVELS}
        found["connections"] = lambda: traffic.connections(self.in_all, self._connections())
        found["links"] = lambda: traffic.links(self.in_all, self._wanted_links())
        found["latency"] = lambda: traffic.latency(self.in_all)
        by_window = {
            level.name + traffic.BY_WINDOW: partial(traffic.by_window, self.over_time, level) for level in LEVELS
        }
        return {**found, **by_window}

    def _others(self) -> dict[str, Maker]:
        return {
            "credit": lambda: credit.starved(*self._credit(), self.time.recorded_s),
            "credit_by_window": lambda: credit.starved_by_window(*self._credit(), self.links_window_us),
            "unsettled": lambda: unsettled.unsettled(self.said, self._wanted_links(), self.span),
            "queues": lambda: queues.in_all(
                self._until(), traffic.flows(self.in_all), self._queues(), self.span.from_us
            ),
            "queues_by_window": lambda: queues.by_window(
                self._then(), traffic.flows(self.over_time), self._queues(), self.window_us
            ),
            "takers": lambda: shares.takers(
                traffic.moved(self.in_all), self._wanted_links(), self.nodes, self.time.from_us, self.time.to_us
            ),
            "talkers": lambda: shares.talkers(traffic.moved(self.in_all), self._wanted_links()),
            "peers": lambda: shares.peers(self._connections().where(WAS_THERE), self.span),
            "outages": self._outages,
            "link_state": lambda: neighbors.history(self.said).where(within(F.col("at_us"), self.span)),
            "circuits": self._circuits,
            "edges": lambda: paths.edges(
                traffic.flows(self.in_all), self._wanted_links(), paths.costs(self.said), self.time.seconds
            ),
            "runs": lambda: runs.runs(self.said, self.nodes),
            "missing": lambda: runs.missing(self._then(), traffic.flows(self.in_all)),
            "drops": lambda: runs.drops(self._of_links(), self._wanted_links()),
            "drains": lambda: credit.drains(self._of_links(), self._wanted_links()),
            "noteworthy": lambda: shares.noteworthy(
                self._of_wanted(traffic.flows(self.over_time)), self._wanted_links(), MOST_NOTEWORTHY
            ),
        }

    def _outages(self) -> DataFrame:
        flows = self._of_wanted(traffic.flows(self.over_time))
        outages = neighbors.outages(self.said, flows, self.window_us)
        outages = outages.where(touches(F.col("at_us"), F.col("until_us"), self.span))
        return endings.explained(outages, self.said)

    def _circuits(self) -> DataFrame:
        return paths.circuits(traffic.flows(self.in_all), self._wanted_links(), self.said, self.cheapest)

    def _credit(self) -> tuple[DataFrame, DataFrame, TimeSpan]:
        """Return the arguments for the tables of credit: records, links, and the recorded time.

        The time is widened by the largest error of a clock, up to the limits of the requested time: a wait that a node
        with a wrong clock recorded may lie outside of the recorded time.
        """
        recorded = self.time.recorded.widened(self.off_us).within(self.span)
        return self._of_wanted(self.said), self._wanted_links(), recorded

    def _queues(self) -> DataFrame:
        return marked(queues.things(self.said, self.address), self.said, self.span)

    def _wanted_links(self) -> DataFrame:
        return self.links.where(like("address", self.address))

    def _connections(self) -> DataFrame:
        return marked(connections(self.said), self.said, self.span)

    def _of_wanted(self, rows: DataFrame) -> DataFrame:
        """Return those of ``rows`` whose link has a requested address; all rows if no address was requested."""
        if self.address is None:
            return rows
        keys = ["node", "run", "link"]
        return rows.join(F.broadcast(self._wanted_links().select(*keys)), keys, "left_semi")

    def _of_links(self) -> DataFrame:
        return self._of_wanted(self._then())

    def _then(self) -> DataFrame:
        """Return the state records of the requested time, without earlier ones, which only show the state at its
        beginning.
        """
        return self.said.where(within(F.col("at_us"), self.span))

    def _until(self) -> DataFrame:
        """Return the state records until the end of the requested time, with all earlier ones.

        The last depth of a queue that was recorded before the requested time still holds at its beginning.
        """
        return self.said.where(within(F.col("at_us"), TimeSpan(None, self.span.to_us)))

"""Adds sums of links up to the traffic of the mesh, of routers, connections, links, addresses and users.

Each table is made twice: over the whole time, and by window.

`mesh`, `addresses` and `users` count a message where it enters (``side`` in) and where it leaves (``side`` out), `mesh`
and `addresses` separately for clients and queues (``peer``). Through a queue a message enters twice, from its producer
and from the queue. A message crosses the mesh on several links; only the first and the last link count in these tables,
and brokers' own records do not, as the routers beside them have the same messages. `routers`, `connections` and `links`
count every message in or out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy
import pyarrow

from linklogs.replay.codes import ALL, OTHER, PAIR, QUEUE, SIDES, WENT, WHATS, Numbers
from linklogs.replay.facts import PEERS, UNKNOWN, Facts
from linklogs.replay.groups import numbered
from linklogs.replay.histograms import least_of_each, wide_of_each
from linklogs.replay.measures import measured
from linklogs.replay.rows import TrafficRows
from linklogs.replay.sums import Sums, unpacked

WHOLE: Final = "whole"
"""Level of rows with packed sums without windows, which `TotalLevels` adds up."""
FLOWS: Final = "flows"
"""Level of rows with single sums by outcome or event: by window for queues and failed messages, else in all."""
LATENCY: Final = "latency"
TIME: Final = "time"
"""Level of rows with the time of traffic: the first window in ``window``, the last in ``other``."""
NOTICE: Final = "notice"
"""Level of rows with notices, one for each file with unreadable parts: a sentence in ``what``."""

Columns: TypeAlias = Mapping[str, pyarrow.Array]
Keys: TypeAlias = Callable[["LinkSums"], tuple[Numbers, Callable[[Numbers], Columns]]]


@dataclass(frozen=True, slots=True)
class LinkSums:
    """Sums of links with the facts about each link; ``place`` is the link's index in ``facts``, UNKNOWN without
    facts.
    """

    sums: Sums
    facts: Facts
    place: Numbers

    @classmethod
    def links(cls, sums: Sums, facts: Facts) -> LinkSums:
        of_links = sums.where((sums.side <= WENT) & _is_told(sums, facts))
        place = facts.places(of_links.run, of_links.link)
        if not facts.is_cut:
            return cls(of_links, facts, place)
        is_wanted = (place != UNKNOWN) & facts.is_wanted[place] if len(facts.key) else numpy.zeros(len(place), bool)
        return cls(of_links.where(is_wanted), facts, place[is_wanted])

    def fact(self, values: Numbers) -> Numbers:
        """Return the value of ``values``, an array of facts, for the link of each sum; UNKNOWN for a link without
        facts.
        """
        if not len(values):
            return numpy.full(len(self.place), UNKNOWN)
        return numpy.where(self.place == UNKNOWN, UNKNOWN, values[self.place])

    def where(self, mask: Numbers) -> LinkSums:
        return self if mask.all() else LinkSums(self.sums.where(mask), self.facts, self.place[mask])

    def crossing(self) -> LinkSums:
        """Select the sums of links at the edge of the mesh, to clients and queues."""
        return self.where(self.fact(self.facts.peer) != UNKNOWN)


def _mesh(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    key = of.fact(of.facts.peer) * 2 + of.sums.side
    return key, lambda keys: {"side": _sides(keys % 2), "peer": _peers(keys // 2)}


def _routers(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    nodes, number = of.facts.nodes(), of.facts.node_of_run()
    key = number[of.sums.run] * 2 + of.sums.side
    return key, lambda keys: {"node": nodes.column(keys // 2), "side": _sides(keys % 2)}


def _connections(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    number, connections = numbered(of.fact(of.facts.connection))
    runs = max(1, len(of.facts.runs))
    key = (number * runs + of.sums.run) * 2 + of.sums.side

    def columns(keys: Numbers) -> Columns:
        connection, run = numpy.divmod(keys // 2, runs)
        return {
            **_of_runs(of.facts, run),
            "connection": pyarrow.array(connections[connection]),
            "side": _sides(keys % 2),
        }

    return key, columns


def _connections_of(facts: Facts) -> int:
    """Return the number of connections that links name; a connection's number is unique only within a run."""
    known = facts.connection != UNKNOWN
    number, connections = numbered(facts.connection[known])
    run = facts.key[known] // max(1, len(facts.links))
    return len(numpy.unique(run * len(connections) + number))


def _links(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    number, links = numbered(of.sums.link)
    runs = max(1, len(of.facts.runs))
    key = (number * runs + of.sums.run) * 2 + of.sums.side

    def columns(keys: Numbers) -> Columns:
        link, run = numpy.divmod(keys // 2, runs)
        place = of.facts.places(run, links[link])
        peer = LinkSums(of.sums, of.facts, place).fact(of.facts.peer)
        return {
            **_of_runs(of.facts, run),
            "link": pyarrow.array(links[link]),
            "side": _sides(keys % 2),
            "peer": _peers(peer),
        }

    return key, columns


def _addresses(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    key = (of.fact(of.facts.address) * len(PEERS) + of.fact(of.facts.peer)) * 2 + of.sums.side

    def columns(keys: Numbers) -> Columns:
        address, peer = numpy.divmod(keys // 2, len(PEERS))
        return {"address": of.facts.addresses.column(address), "side": _sides(keys % 2), "peer": _peers(peer)}

    return key, columns


def _users(of: LinkSums) -> tuple[Numbers, Callable[[Numbers], Columns]]:
    key = of.fact(of.facts.user) * 2 + of.sums.side
    return key, lambda keys: {"user": of.facts.users.column(keys // 2), "side": _sides(keys % 2)}


def _of_users(of: LinkSums) -> LinkSums:
    crossing = of.crossing()
    null = len(of.facts.users) - 1
    return crossing.where(crossing.fact(of.facts.user) != null)


@dataclass(frozen=True, slots=True)
class AggregationLevel:
    """The key by which a table of traffic is summed, such as router or address.

    ``names``: the key columns of the table. ``rows``: a function that selects the sums that count. ``keys``: a function
    that returns the key of each sum as a number, and a function from such numbers to the key columns.
    """

    name: str
    names: tuple[str, ...]
    rows: Callable[[LinkSums], LinkSums]
    keys: Keys
    things: Callable[[Facts], int]
    """Estimates the number of rows in the table without windows."""


LEVELS: Final = (
    AggregationLevel("mesh", ("side", "peer"), LinkSums.crossing, _mesh, lambda facts: 4),
    AggregationLevel("routers", ("node", "side"), lambda of: of, _routers, lambda facts: 2 * len(facts.nodes())),
    AggregationLevel(
        "connections",
        ("node", "run", "connection", "side"),
        lambda of: of.where(of.fact(of.facts.connection) != UNKNOWN),
        _connections,
        lambda facts: 2 * _connections_of(facts),
    ),
    AggregationLevel("links", ("node", "run", "link", "side"), lambda of: of, _links, lambda facts: len(facts.key)),
    AggregationLevel(
        "addresses", ("address", "side", "peer"), LinkSums.crossing, _addresses, lambda facts: 3 * len(facts.addresses)
    ),
    AggregationLevel("users", ("user", "side"), _of_users, _users, lambda facts: 2 * len(facts.users)),
)


@dataclass(frozen=True, slots=True)
class WindowLevels:
    """A function for workers of Spark that makes the tables by window: from batches of packed sums to batches of ROWS.

    The rows include sums over all windows for `TotalLevels`. All sums of a window must come to the same worker.
    ``windows_us``: the width of a window at each level, in us.
    """

    facts: Facts
    windows_us: Mapping[str, int]

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        sums, notices = unpacked(batches)
        if notices:
            yield TrafficRows(NOTICE, len(notices)).batch({"what": pyarrow.array(notices)})
        if sums is None:
            return
        of = LinkSums.links(sums, self.facts)
        for level in LEVELS:
            yield from _rows(level, of, self.windows_us[level.name])
        flows = sums.where((sums.side == QUEUE) | (sums.side == PAIR))
        yield from (_flows(flows, self.facts), _whole(sums), _time(sums))


@dataclass(frozen=True, slots=True)
class TotalLevels:
    """A function for one worker of Spark that makes the tables over the whole time, from the sums of `WindowLevels`.

    ``seconds``: the length of the report's time, for rates.
    """

    facts: Facts
    seconds: float

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        sums, _ = unpacked(batches)
        if sums is None:
            return
        of = LinkSums.links(sums, self.facts)
        for level in LEVELS:
            yield from _rows(level, of, None, self.seconds)
        yield _flows(sums, self.facts)
        yield _latency(of.crossing())


def _rows(
    level: AggregationLevel, of: LinkSums, window_us: int | None, seconds: float = 0
) -> Iterator[pyarrow.RecordBatch]:
    counted = level.rows(of)
    if not len(counted.sums):
        return
    key, columns = level.keys(counted)
    window, windows = numbered(_windows(counted.sums, window_us))
    number, keys = numbered(key)
    found = measured(counted.sums, number * len(windows) + window)
    thing, in_window = numpy.divmod(found.keys, len(windows))
    over_time = {} if window_us is None else {"window": pyarrow.array(windows[in_window])}
    rates = found.columns(seconds if window_us is None else window_us / US_PER_S)
    yield TrafficRows(level.name, len(found)).batch({**columns(keys[thing]), **over_time, **rates})


US_PER_S: Final = 1_000_000


def _is_told(sums: Sums, facts: Facts) -> Numbers:
    """Tell for each sum whether its run has state records, without which nothing is known about its link or queue."""
    is_told: Numbers = (sums.run >= 0) & (sums.run < facts.told)
    return is_told


def _windows(sums: Sums, window_us: int | None) -> Numbers:
    return sums.window * 0 if window_us is None else sums.window // window_us * window_us


def _flows(sums: Sums, facts: Facts) -> pyarrow.RecordBatch:
    # Counts of records (side ALL) stay for runs without state records, too; all other sums of such runs are left out.
    found = sums.where(_is_told(sums, facts) | ((sums.run >= 0) & (sums.side == ALL)))
    words = pyarrow.array([*WHATS, None], pyarrow.string())
    columns = {
        **_of_runs(facts, found.run.astype(numpy.int64)),
        "side": pyarrow.array(SIDES).take(pyarrow.array(found.side)),
        "what": words.take(pyarrow.array(numpy.minimum(found.what, len(WHATS)))),
        **{name: pyarrow.array(getattr(found, name)) for name in ("link", "other", "window", "messages", "size_bytes")},
        "max_us": pyarrow.array(found.longest_us),
    }
    return TrafficRows(FLOWS, len(found)).batch(columns)


def _whole(sums: Sums) -> pyarrow.RecordBatch:
    """Add the sums of each link over all windows, and pack them into one row, which `TotalLevels` unpacks.

    Failures by pair of links are left out, since tables show these by window only.
    """
    rest = sums.where(sums.side != PAIR)
    link, _ = numbered(rest.link)
    runs = int(rest.run.max(initial=0)) + 2
    key = ((link * len(SIDES) + rest.side) * (OTHER + 1) + rest.what) * runs + rest.run + 1
    packed = measured(rest, key).added().packed()
    return TrafficRows(WHOLE, 1).batch({"sums": pyarrow.array([packed], pyarrow.binary())})


def _time(sums: Sums) -> pyarrow.RecordBatch:
    first, last = sums.window.min(), sums.window.max()
    return TrafficRows(TIME, 1).batch({"window": pyarrow.array([first]), "other": pyarrow.array([last])})


def _latency(of: LinkSums) -> pyarrow.RecordBatch:
    key, columns = _mesh(of)
    keys, bucket, count = measured(of.sums, key).of_pairs()
    least = least_of_each(bucket)
    counted = {"bucket": bucket, "least_us": least, "largest_us": least + wide_of_each(bucket), "messages": count}
    arrays = {name: pyarrow.array(values) for name, values in counted.items()}
    return TrafficRows(LATENCY, len(bucket)).batch({**columns(keys), **arrays})


def _of_runs(facts: Facts, run: Numbers) -> Columns:
    places = pyarrow.array(run)
    return {
        "node": pyarrow.array([node for node, _ in facts.runs], pyarrow.string()).take(places),
        "run": pyarrow.array([each for _, each in facts.runs], pyarrow.int64()).take(places),
    }


def _sides(numbers: Numbers) -> pyarrow.Array:
    return pyarrow.array(SIDES).take(pyarrow.array(numbers))


def _peers(numbers: Numbers) -> pyarrow.Array:
    words = pyarrow.array([*PEERS, None], pyarrow.string())
    return words.take(pyarrow.array(numpy.where(numbers == UNKNOWN, len(PEERS), numbers)))

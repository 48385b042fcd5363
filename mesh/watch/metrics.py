"""Writes the model of a host as metrics, in Prometheus' text format 0.0.4. Sans-IO.

`exposition` is the answer of `/metrics`: the topology bounds the number of its series, since there is no series of a
single address, link or user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from mesh.watch.counts import LatencyCounts
from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.host_model import HostModel
from mesh.watch.metric_table import (
    LATENCY_BOUNDS,
    NEIGHBOR_GROUP,
    NODE_GROUP,
    NODE_STATES,
    OBSERVER_GROUP,
    PATTERN_GROUP,
    QUEUE_GROUP,
    MetricFamily,
    MetricGroup,
    MetricSample,
    MetricType,
    Presence,
)
from mesh.watch.states import GETTERS, ObservedNeighbor, ObservedNode, ObservedPattern, PatternQueueTotals

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

MetricRow = tuple[str, Any]
"""The labels of an entity, as text, and its state."""
RowsOf = Callable[[Presence], Sequence[MetricRow]]

_ALIVE: Final = ("running", "silent")
_ESCAPED: Final = re.compile('[\\\\"\n\ud800-\udfff]')
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_BOUNDS: Final = tuple((str((1 << power) / 1e6), power + 1) for power in LATENCY_BOUNDS)
"""Each bound in seconds, and the number of buckets below the bound."""


def _is_in(state: str) -> Callable[[ObservedNode], int]:
    return lambda node: int(node.state == state)


DERIVED: Final[dict[str, dict[str, Callable[[Any], Any]]]] = {
    OBSERVER_GROUP.name: {
        "read_at": lambda host: host.utc_s,
        "addresses": lambda host: len(host.addresses) - len(host.idle),
        "idle_forgotten": lambda host: host.idle.forgotten,
        "dropped_answers": lambda host: host.dropped_answers,
    },
    NODE_GROUP.name: {
        "is_up": _is_in("running"),
        "latencies": lambda node: node.latencies,
        **{f"is_{state}": _is_in(state) for state in NODE_STATES},
    },
    PATTERN_GROUP.name: {"latencies": lambda pattern: pattern.latencies},
    QUEUE_GROUP.name: {"fullest": lambda queues: queues.fullest},
    NEIGHBOR_GROUP.name: {"is_up": lambda neighbor: int(neighbor.neighbor in neighbor.node.neighbors)},
}
"""By group and name, the functions for fields that are none of the model's."""


def exposition(host: HostModel, expected: Iterable[ExpectedNode] = (), unlisted: Collection[str] = ()) -> Iterator[str]:
    """Yield the text of `/metrics`, in parts of a family each. The model may change between two parts.

    ``expected``: the nodes of the topology on this host; those without a ring are down, and so are their neighbors
    that no router hears. ``unlisted``: declared patterns that have no series. A series takes some 0.4 us, a queue 0.2
    us more.
    """
    expected = tuple(expected)
    yield from write_group(OBSERVER_GROUP, lambda _: [("", host)])
    nodes = _nodes(host, expected)
    yield from write_group(NODE_GROUP, nodes.__getitem__)
    patterns = rows_of(PATTERN_GROUP, (each for each in host.patterns.values() if each.pattern not in unlisted))
    yield from write_group(PATTERN_GROUP, lambda _: patterns)
    queues = _queues(host, unlisted)
    yield from write_group(QUEUE_GROUP, queues.__getitem__)
    neighbors = rows_of(NEIGHBOR_GROUP, _neighbors(host, expected))
    yield from write_group(NEIGHBOR_GROUP, lambda _: neighbors)


def escape_label(text: str) -> str:
    """Return ``text`` as the value of a label is written; a code point that UTF-8 has not becomes U+FFFD."""
    return _ESCAPED.sub(_escape, text) if _ESCAPED.search(text) else text


def rows_of(group: MetricGroup, states: Iterable[Any]) -> list[MetricRow]:
    """Return the labels of each of ``states``; a label without a value is empty, which Prometheus takes for absent."""
    assert group.entity is not None
    getters = GETTERS[group.entity]
    labels = [(name, getters[field]) for name, field in group.labels]
    return [
        (",".join([f'{name}="{escape_label(value_of(state) or "")}"' for name, value_of in labels]), state)
        for state in states
    ]


def write_group(group: MetricGroup, rows_for: RowsOf) -> Iterator[str]:
    """Yield each family of ``group``, with samples of the rows that ``rows_for`` gives for the family's presence."""
    for family in group.families:
        rows = rows_for(family.presence)
        if family.type is MetricType.HISTOGRAM:
            lines = list(_histogram(family, rows, _value_of(group, family.samples[0])))
        else:
            lines = [
                line for sample in family.samples for line in _samples(family, sample, rows, _value_of(group, sample))
            ]
        yield head_of(family) + "".join(lines)


def head_of(family: MetricFamily) -> str:
    return f"# HELP {family.name} {family.meaning}.\n# TYPE {family.name} {family.type}\n"


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], "\ufffd")


def _value_of(group: MetricGroup, sample: MetricSample) -> Callable[[Any], Any]:
    if sample.is_derived:
        return DERIVED[group.name][sample.field]
    assert group.entity is not None
    return GETTERS[group.entity][sample.field]


def _samples(
    family: MetricFamily, sample: MetricSample, rows: Sequence[MetricRow], value_of: Callable[[Any], Any]
) -> list[str]:
    name = family.name
    fixed = "".join(f',{label}="{value}"' for label, value in sample.fixed)
    return [
        f"{name}{{{labels}{fixed}}} {value}\n" if labels else f"{name} {value}\n"
        for labels, state in rows
        if (value := value_of(state)) is not None
    ]


def _histogram(
    family: MetricFamily, rows: Sequence[MetricRow], latencies_of: Callable[[Any], LatencyCounts]
) -> Iterator[str]:
    name = family.name
    for labels, state in rows:
        latencies = latencies_of(state)
        counts, below, total = latencies.counts, 0, 0
        for bound, buckets in _BOUNDS:
            total += sum(counts[below:buckets])
            below = buckets
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}\n'
        total += sum(counts[below:])
        yield (
            f'{name}_bucket{{{labels},le="+Inf"}} {total}\n'
            f"{name}_sum{{{labels}}} {latencies.sum_us / 1e6}\n{name}_count{{{labels}}} {total}\n"
        )


def _nodes(host: HostModel, expected: Sequence[ExpectedNode]) -> dict[Presence, list[MetricRow]]:
    unseen = []
    for each in expected:
        if each.name not in host.nodes:
            unseen.append(ObservedNode(each.name))
            unseen[-1].role, unseen[-1].state = each.role, "unknown"
    seen = rows_of(NODE_GROUP, host.nodes.values())
    return {
        Presence.ALWAYS: seen + rows_of(NODE_GROUP, unseen),
        Presence.SEEN: seen,
        Presence.ALIVE: [row for row in seen if row[1].state in _ALIVE],
    }


class _PatternQueues:
    """The queues of one pattern at one broker, added up, with the attributes of a `ObservedQueue`."""

    __slots__ = ("acquired", "came_at", "depth", "depth_bytes", "fullest", "node", "oldest_s", "pattern_text", "totals")

    def __init__(self, node: ObservedNode, pattern: ObservedPattern, totals: PatternQueueTotals) -> None:
        self.node, self.pattern_text, self.totals = node, pattern.pattern, totals
        self.depth = self.depth_bytes = self.acquired = 0
        self.came_at: float | None = None
        self.oldest_s: float | None = None
        self.fullest: float | None = None

    enqueued = property(lambda self: self.totals.enqueued)
    dequeued = property(lambda self: self.totals.dequeued)
    expired = property(lambda self: self.totals.expired)
    dead_lettered = property(lambda self: self.totals.dead_lettered)
    removed = property(lambda self: self.totals.removed)


def _queues(host: HostModel, unlisted: Collection[str]) -> dict[Presence, list[MetricRow]]:
    found = [each for node in host.nodes.values() for each in _queues_of(host, node)]
    rows = rows_of(QUEUE_GROUP, (each for each in found if each.pattern_text not in unlisted))
    return {Presence.SEEN: rows, Presence.ALIVE: [row for row in rows if row[1].node.state in _ALIVE]}


def _queues_of(host: HostModel, node: ObservedNode) -> Iterable[_PatternQueues]:
    found = {pattern: _PatternQueues(node, pattern, totals) for pattern, totals in node.queue_totals.items()}
    for queue in node.queues.values():
        pattern = queue.address.pattern if queue.address is not None else None
        if pattern is None:
            continue
        sums = found[pattern]
        sums.depth += queue.depth
        sums.depth_bytes += queue.depth_bytes
        sums.acquired += queue.acquired
        came_at = queue.came_at
        if came_at is not None and (sums.came_at is None or came_at < sums.came_at):
            sums.came_at = came_at
        limits = pattern.queue_limits
        for value, limit in ((queue.depth, limits.max_messages), (queue.depth_bytes, limits.max_bytes)):
            if limit is not None:
                sums.fullest = max(sums.fullest or 0.0, value / limit)
    for sums in found.values():
        if sums.came_at is not None:
            sums.oldest_s = max(0.0, host.utc_s - sums.came_at)
    return found.values()


def _neighbors(host: HostModel, expected: Sequence[ExpectedNode]) -> Iterator[ObservedNeighbor]:
    """Yield each neighbor that a router hears, and then those of the topology that a living router does not hear."""
    for node in host.nodes.values():
        yield from node.neighbors.values()
    for each in expected:
        router = host.nodes.get(each.name)
        if router is not None and router.state in _ALIVE:
            for name in each.neighbors:
                if name not in router.neighbors:
                    yield ObservedNeighbor(router, name, None, None)

"""The metrics of `/metrics` and `/metrics/detailed`: name, type, meaning, and the entity and fields with the values.

A group is families of one entity with the same labels, and so a row of labels for each entity. Names follow Prometheus'
conventions: base units, `_total` for counters. Names of the second tier begin with `amqpmesh_detailed_`, so that no sum
counts a message in both tiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from mesh.watch.starved_times import CREDIT_CAUSES
from recording.entities import ADDRESS, LINK, NEIGHBOR, NODE, PATTERN, QUEUE, USER, Entity

Labels = tuple[tuple[str, str], ...]

LATENCY_BOUNDS: Final = (*range(7, 21), 22, 24, 26)
"""Buckets of `mesh.watch.counts.LatencyCounts` that have a bound in a histogram: 2^n us, from 128 us to 67 s."""
NODE_STATES: Final = ("running", "silent", "ended", "lost", "unknown")
"""The states of entity `node`, and unknown: the topology has the node on this host, and no ring of it is there."""


class MetricType(StrEnum):
    """Type of a family, as Prometheus has it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Presence(Enum):
    """When an entity has samples of a family."""

    ALWAYS = "always, also of a node that the observer has never seen"
    SEEN = "once the observer has seen the node"
    ALIVE = "while the node is running or silent"


@dataclass(frozen=True, slots=True)
class MetricSample:
    """A value of each entity: its field ``field``, with the labels ``fixed`` beside those of the group.

    A derived field is none of the model's: `mesh.watch.metrics` computes the value.
    """

    field: str
    fixed: Labels = ()
    is_derived: bool = False


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A metric. A histogram has one sample, whose derived field is a `mesh.watch.counts.LatencyCounts`."""

    name: str
    type: MetricType
    meaning: str
    samples: tuple[MetricSample, ...]
    presence: Presence = Presence.ALIVE


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Families of ``entity``. ``labels``: name of a label and the field with its value. No entity: the observer."""

    name: str
    each: str
    entity: Entity | None
    labels: Labels
    families: tuple[MetricFamily, ...]

    @property
    def series(self) -> int:
        """The most series of one entity."""
        return sum(map(_series_of, self.families))


def _series_of(family: MetricFamily) -> int:
    # A histogram has a bucket for each bound and one for the rest, a sum and a count.
    return len(LATENCY_BOUNDS) + 3 if family.type is MetricType.HISTOGRAM else len(family.samples)


_OUTCOMES: Final = ("accepted", "rejected", "released", "modified", "settled", "aborted")


def _one(field: str) -> tuple[MetricSample, ...]:
    return (MetricSample(field),)


def _derived(field: str) -> tuple[MetricSample, ...]:
    return (MetricSample(field, is_derived=True),)


def _gauge(name: str, meaning: str, field: str) -> MetricFamily:
    return MetricFamily(name, MetricType.GAUGE, meaning, _one(field))


def _counter(name: str, meaning: str, field: str) -> MetricFamily:
    return MetricFamily(name, MetricType.COUNTER, meaning, _one(field), Presence.SEEN)


def _starved(name: str, meaning: str) -> MetricFamily:
    return MetricFamily(
        name,
        MetricType.COUNTER,
        f"{meaning}, by cause: no_taker, no consumer or broker takes messages; takers, these give no credit; at a "
        "broker full_queue, disk, memory",
        tuple(MetricSample(f"starved_{cause}_s", (("cause", cause),)) for cause in CREDIT_CAUSES),
        Presence.SEEN,
    )


def _each_way(name: str, type_: MetricType, meaning: str, prefixes: tuple[str, str], field: str) -> MetricFamily:
    samples = tuple(
        MetricSample(prefix + field, (("direction", direction),))
        for prefix, direction in zip(prefixes, ("in", "out"), strict=True)
    )
    presence = Presence.SEEN if type_ is MetricType.COUNTER else Presence.ALIVE
    return MetricFamily(name, type_, meaning, samples, presence)


def _deliveries(name: str, meaning: str, prefixes: tuple[str, str]) -> MetricFamily:
    return MetricFamily(
        name,
        MetricType.COUNTER,
        f"{meaning}, by direction and outcome; settled: sent settled, or settled without an outcome",
        tuple(
            MetricSample(prefix + outcome, (("direction", direction), ("outcome", outcome)))
            for prefix, direction in zip(prefixes, ("in", "out"), strict=True)
            for outcome in _OUTCOMES
        ),
        Presence.SEEN,
    )


def _traffic(stem: str, subject: str, prefixes: tuple[str, str]) -> tuple[MetricFamily, ...]:
    return (
        _deliveries(f"{stem}_deliveries_total", f"Deliveries {subject}", prefixes),
        _each_way(f"{stem}_bytes_total", MetricType.COUNTER, f"Size of deliveries {subject}", prefixes, "bytes"),
    )


def _delayed(stem: str, subject: str, prefixes: tuple[str, str]) -> tuple[MetricFamily, ...]:
    return tuple(
        _each_way(
            f"{stem}_deliveries_delayed_{seconds}s_total",
            MetricType.COUNTER,
            f"Deliveries {subject} that took {seconds} s or longer from arrival to settlement",
            prefixes,
            f"delayed_{seconds}s",
        )
        for seconds in (1, 10)
    )


def _latency(name: str, subject: str) -> MetricFamily:
    return MetricFamily(
        name,
        MetricType.HISTOGRAM,
        f"Time from arrival to settlement of deliveries {subject}, in buckets of a factor of 2, above 1.05 s of "
        "4; the sum is estimated from narrower ones",
        _derived("latencies"),
        Presence.SEEN,
    )


_LINKS: Final = ("in_", "out_")
_INGRESS: Final = ("ingress_", "egress_")
_OF_CLIENTS: Final = "from clients (in) and to clients (out)"

OBSERVER_GROUP: Final = MetricGroup(
    "observer",
    "observer",
    None,
    (),
    (
        MetricFamily(
            "amqpmesh_observer_read_timestamp_seconds",
            MetricType.GAUGE,
            "When the observer last read the rings of the nodes",
            _derived("read_at"),
        ),
        MetricFamily(
            "amqpmesh_addresses",
            MetricType.GAUGE,
            "Addresses that clients or nodes have links for on this host, also those without a pattern",
            _derived("addresses"),
        ),
        MetricFamily(
            "amqpmesh_idle_addresses_forgotten_total",
            MetricType.COUNTER,
            "Addresses of metrics.detail that nobody used, and whose counters were forgotten for want of room",
            _derived("idle_forgotten"),
            Presence.ALWAYS,
        ),
        MetricFamily(
            "amqpmesh_management_answers_dropped_total",
            MetricType.COUNTER,
            "Answers to requests at $management that no client took: the client had gone, gave no credit in time, or "
            "did not accept the answer",
            _derived("dropped_answers"),
            Presence.ALWAYS,
        ),
    ),
)
NODE_GROUP: Final = MetricGroup(
    "node",
    "node on the host",
    NODE,
    (("node", "name"), ("role", "role")),
    (
        MetricFamily(
            "amqpmesh_node_up",
            MetricType.GAUGE,
            "Whether the node is running, and has written its clock within 3 s",
            _derived("is_up"),
            Presence.ALWAYS,
        ),
        MetricFamily(
            "amqpmesh_node_state",
            MetricType.GAUGE,
            "1 for the state of the node, 0 for the other states; unknown: the topology has the node on this host, "
            "and the observer has never seen it",
            tuple(MetricSample(f"is_{state}", (("state", state),), is_derived=True) for state in NODE_STATES),
            Presence.ALWAYS,
        ),
        MetricFamily(
            "amqpmesh_source_age_seconds",
            MetricType.GAUGE,
            "Time since the node last wrote its clock to the ring that all its metrics are from",
            _one("age_s"),
        ),
        _gauge("amqpmesh_node_start_time_seconds", "Start of the node", "started_at"),
        _gauge("amqpmesh_node_counted_since_timestamp_seconds", "Time from which the counters of the node count",
               "counted_since"),
        _gauge("amqpmesh_node_connections", "Connections that are open", "connections"),
        _gauge("amqpmesh_node_clients", "Connections of clients that are open", "clients"),
        _gauge("amqpmesh_node_clients_limit", "Most connections of clients, over all listeners of the router",
               "max_clients"),
        _gauge("amqpmesh_node_links", "Links that are attached", "links"),
        _gauge("amqpmesh_node_waiting_producers", "Links of producers without credit", "waiting_producers"),
        _gauge("amqpmesh_node_cpu_seconds", "Processor time of the node's process since its start", "cpu_s"),
        _gauge("amqpmesh_node_resident_bytes", "Resident memory of the node's process", "resident_bytes"),
        _counter("amqpmesh_node_records_dropped_total", "Records that the node lost, for want of room in its ring",
                 "records_dropped"),
        _counter("amqpmesh_node_records_missed_total", "Slots of the ring that were overwritten before the observer "
                 "read them: counters are too small by their content", "records_missed"),
        *_traffic("amqpmesh_node", "over all links of the node, incoming (in) and outgoing (out)", _LINKS),
        *_traffic("amqpmesh_node_client", _OF_CLIENTS, _INGRESS),
        *_delayed("amqpmesh_node_client", _OF_CLIENTS, _INGRESS),
        _latency("amqpmesh_node_latency_seconds", "from clients"),
    ),
)  # fmt: skip
PATTERN_GROUP: Final = MetricGroup(
    "pattern",
    "declared pattern",
    PATTERN,
    (("pattern", "pattern"), ("type", "type")),
    (
        _gauge("amqpmesh_pattern_addresses", "Addresses in use that the pattern covers", "addresses"),
        _gauge("amqpmesh_pattern_producers", "Links of clients that send", "producers"),
        _gauge("amqpmesh_pattern_consumers", "Links of clients that receive", "consumers"),
        _gauge("amqpmesh_pattern_waiting_producers", "Links of clients that send and have no credit",
               "waiting_producers"),
        _starved("amqpmesh_pattern_starved_seconds_total", "Time without credit, of all producers together"),
        *_traffic("amqpmesh_pattern", _OF_CLIENTS, _LINKS),
        *_delayed("amqpmesh_pattern", _OF_CLIENTS, _LINKS),
        _each_way("amqpmesh_pattern_last_delivery_timestamp_seconds", MetricType.GAUGE,
                  f"End of the last delivery {_OF_CLIENTS}", _LINKS, "last_at"),
        _latency("amqpmesh_pattern_latency_seconds", "from clients"),
    ),
)  # fmt: skip


def _queue(stem: str, subject: str) -> tuple[MetricFamily, ...]:
    return (
        _gauge(f"{stem}_messages", f"Messages in {subject}", "depth"),
        _gauge(f"{stem}_bytes", f"Size of the messages in {subject}", "depth_bytes"),
        _gauge(f"{stem}_acquired_messages", f"Messages in {subject} that consumers have, without an outcome yet",
               "acquired"),
        _gauge(f"{stem}_oldest_age_seconds", f"Age of the oldest message in {subject}", "oldest_s"),
        _counter(f"{stem}_enqueued_total", f"Messages that entered {subject}", "enqueued"),
        _counter(f"{stem}_dequeued_total", f"Messages in {subject} that consumers took and settled", "dequeued"),
        _counter(f"{stem}_expired_total", f"Messages in {subject} that expired", "expired"),
        _counter(f"{stem}_dead_lettered_total", f"Messages in {subject} that moved to the dead-letter queue",
                 "dead_lettered"),
        _counter(f"{stem}_removed_total", f"Messages that left {subject} for another reason: refused, dropped, "
                 "purged, moved, queue deleted", "removed"),
    )  # fmt: skip


QUEUE_GROUP: Final = MetricGroup(
    "queue",
    "embedded broker on the host and pattern of queues or topics",
    QUEUE,
    (("node", "node"), ("pattern", "pattern")),
    (
        *_queue("amqpmesh_pattern_queue", "the queues and subscriptions of the pattern at the broker"),
        MetricFamily(
            "amqpmesh_pattern_queue_fullest_ratio",
            MetricType.GAUGE,
            "Share of max_messages or max_bytes that the fullest queue of the pattern has; none without a limit",
            _derived("fullest"),
        ),
    ),
)
NEIGHBOR_GROUP: Final = MetricGroup(
    "neighbor",
    "interior router on the host and neighbor",
    NEIGHBOR,
    (("node", "node"), ("neighbor", "neighbor")),
    (
        MetricFamily(
            "amqpmesh_neighbor_up",
            MetricType.GAUGE,
            "Whether the router hears the neighbor; 0 for a neighbor of the topology that the router does not hear",
            _derived("is_up"),
        ),
        _gauge("amqpmesh_neighbor_cost", "Cost of the connection to the neighbor", "cost"),
    ),
)
SUMMARY_GROUPS: Final = (OBSERVER_GROUP, NODE_GROUP, PATTERN_GROUP, QUEUE_GROUP, NEIGHBOR_GROUP)
"""The groups of `/metrics`; the topology bounds the number of their series."""

_DETAILED: Final = "amqpmesh_detailed"
DETAIL_GROUPS: Final = (
    MetricGroup(
        "address",
        "address",
        ADDRESS,
        (("address", "address"), ("pattern", "pattern")),
        (
            _gauge(f"{_DETAILED}_address_producers", "Links of clients that send", "producers"),
            _gauge(f"{_DETAILED}_address_consumers", "Links of clients that receive", "consumers"),
            _gauge(f"{_DETAILED}_address_waiting_producers", "Links of clients that send and have no credit",
                   "waiting_producers"),
            _gauge(f"{_DETAILED}_address_messages", "Messages in the queue of the address, over all brokers", "depth"),
            *_traffic(f"{_DETAILED}_address", _OF_CLIENTS, _LINKS),
            *_delayed(f"{_DETAILED}_address", _OF_CLIENTS, _LINKS),
        ),
    ),
    MetricGroup(
        "queue",
        "queue or subscription",
        QUEUE,
        (("node", "node"), ("address", "address"), ("subscriber", "subscriber")),
        (
            *_queue(f"{_DETAILED}_queue", "the queue or subscription"),
            _gauge(f"{_DETAILED}_queue_messages_limit", "Most messages in the queue or subscription", "max_messages"),
            _gauge(f"{_DETAILED}_queue_bytes_limit", "Most bytes in the queue or subscription", "max_bytes"),
        ),
    ),
    MetricGroup(
        "link",
        "link",
        LINK,
        (("link", "id"), ("role", "role"), ("address", "address"), ("user", "user")),
        (
            _gauge(f"{_DETAILED}_link_credit", "Credit as last recorded", "credit"),
            _gauge(f"{_DETAILED}_link_unsettled", "Deliveries that wait for an outcome, of an outgoing link that "
                   "stands still for 10 s", "unsettled"),
            _starved(f"{_DETAILED}_link_starved_seconds_total", "Time without credit"),
            _counter(f"{_DETAILED}_link_missed_total", "Copies and pre-settled deliveries that were dropped", "missed"),
            MetricFamily(
                f"{_DETAILED}_link_deliveries_total",
                MetricType.COUNTER,
                "Deliveries over the link, by outcome",
                tuple(MetricSample(outcome, (("outcome", outcome),)) for outcome in _OUTCOMES),
            ),
            _counter(f"{_DETAILED}_link_bytes_total", "Size of deliveries over the link", "bytes"),
        ),
    ),
    MetricGroup(
        "user",
        "user",
        USER,
        (("user", "user"),),
        (
            _gauge(f"{_DETAILED}_user_connections", "Connections that are open", "connections"),
            _gauge(f"{_DETAILED}_user_connections_limit", "Most connections of the user to one router",
                   "max_connections"),
            _gauge(f"{_DETAILED}_user_links", "Links that are attached", "links"),
            *_traffic(f"{_DETAILED}_user", _OF_CLIENTS, _LINKS),
            *_delayed(f"{_DETAILED}_user", _OF_CLIENTS, _LINKS),
        ),
    ),
)  # fmt: skip
"""The groups of `/metrics/detailed`, by the parameter `family`; a request bounds the number of their rows."""
LEFT_OUT: Final = MetricFamily(
    f"{_DETAILED}_rows_left_out",
    MetricType.GAUGE,
    "Entities that matched the request, and were left out since there were more than `top`",
    (),
)

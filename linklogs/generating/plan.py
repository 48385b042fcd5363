"""The plan of generated link logs: runs of nodes, links, routes of messages, rates, queues, and outages.

Each table is a dataclass of numpy arrays of equal length; an index into one table ("place") stands in others for that
row. All times are in us since 1970 (UTC), by a correct clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy
import pyarrow

from recording.columns import DeliveryPart, RecordOutcome

Array: TypeAlias = numpy.ndarray[Any, Any]

OUTCOMES: Final = tuple(RecordOutcome)
PARTS: Final = tuple(DeliveryPart)
NO_LINK: Final = 0
"""Place of the row in `Links` that stands for no link: nobody received the delivery, or no link brought the
delivery.
"""
NO_LIFE: Final = -1
"""Stands for the run of a broker that records nothing, in the column ``life`` of `PlannedQueues`."""
NO_QUEUE: Final = -1


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a node, from its start to its end or to the end of the plan.

    ``rows``: the state records (every kind except deliveries, traffic and messages), in order of time. The state in a
    row lasts until the time in ``until_us`` at the same index, and is in all snapshots until then.

    ``skew_us``: how far the node's clock is ahead at the start. ``steps``: each later setting of the clock, as time and
    change in us.

    ``lost``: spans of time (from, until) in which the ring had no room, so that records were lost.
    """

    node: str
    role: str
    begins_us: int
    ends_us: int
    skew_us: int
    clock_us: int
    topology: str
    version: str
    rows: pyarrow.RecordBatch
    until_us: Array
    lost: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()

    def ahead_us(self, at_us: Array) -> Array:
        """Return how far the node's clock is ahead of a correct clock at each time, in us."""
        if not self.steps:
            return numpy.broadcast_to(numpy.int64(self.skew_us), at_us.shape)
        when, by_us = (numpy.array([each[i] for each in self.steps], numpy.int64) for i in (0, 1))
        ahead_us = self.skew_us + numpy.concatenate([[0], numpy.cumsum(by_us)]).astype(numpy.int64)
        found: Array = ahead_us[numpy.searchsorted(when, at_us, side="right")]
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """The links over which messages pass; the first row is NO_LINK.

    ``number`` is the link's number in records; the other columns serve only to compute the true totals.
    """

    life: Array
    number: Array
    address: Array
    role: tuple[str, ...]
    user: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedTraffic:
    """The traffic of each address: size, latency and shares of outcomes.

    The logarithms (``..._log``, ``..._spread``) are natural ones, of bytes and us; shares are between 0 and 1.
    """

    address: tuple[str, ...]
    treatment: tuple[str, ...]
    size_log: Array
    size_spread: Array
    took_log: Array
    took_spread: Array
    slow_share: Array
    slow_factor: Array
    rejected: Array
    released: Array
    modified: Array


@dataclass(frozen=True, slots=True)
class MessageSteps:
    """The records that a message on a route leaves: for each record, the node's run that writes it and the two links.

    ``gone_us``: transit time from the first router to this one. ``ahead_us``: transit time from this router to the
    last, one way.

    ``pace``: factor by which the message's time at the consumer is multiplied in this record.
    """

    life: Array
    incoming: Array
    outgoing: Array
    part: Array
    gone_us: Array
    ahead_us: Array
    pace: Array


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths of messages over successive links; a route exists as long as all of its links.

    Route ``i`` has the steps ``first[i]`` to before ``first[i + 1]``. If ``is_cut``, the route breaks at ``ends_us``
    and unsettled messages come in doubt; otherwise all messages are settled by then. ``source``: the queue from which
    messages come, or NO_QUEUE. Messages enter the queues ``into[into_first[i]:into_first[i + 1]]``.
    """

    address: Array
    ends_us: Array
    is_cut: Array
    is_settled: Array
    source: Array
    first: Array
    into_first: Array
    into: Array
    steps: MessageSteps


@dataclass(frozen=True, slots=True)
class PlannedRates:
    """The rate of messages on a route for a span of time.

    ``rate_per_s``: messages per second; on a route out of a queue, the weight by which consumers of this queue are
    chosen.
    """

    route: Array
    from_us: Array
    to_us: Array
    rate_per_s: Array


@dataclass(frozen=True, slots=True)
class PlannedQueues:
    """The queues at brokers.

    ``wait_log``: natural logarithm of the median time in the queue, in us, while there is a consumer.

    ``life``: the first run of the queue's broker. ``later``: later runs as (first run, later run, begins_us), in order.
    ``away``: spans in which the broker is down, as (first run, from_us, to_us).

    ``expired``, ``dead_lettered``: shares of messages, between 0 and 1. ``grave``: place of the queue that receives the
    dead letters, or NO_QUEUE.
    """

    life: Array
    number: Array
    address: Array
    name: tuple[str, ...]
    wait_log: Array
    wait_spread: Array
    expired: Array
    dead_lettered: Array
    grave: Array
    later: tuple[tuple[int, int, int], ...] = ()
    away: tuple[tuple[int, int, int], ...] = ()

    def life_at(self, queue: Array, at_us: Array) -> Array:
        first = self.life[queue]
        found: Array = first.copy()
        for of_broker, later, begins_us in self.later:
            found[(first == of_broker) & (at_us >= begins_us)] = later
        return found

    def of_life(self, life: int) -> Array:
        """Return the places of all queues of a broker, given the place of one of the broker's runs."""
        first = next((of_broker for of_broker, later, _ in self.later if later == life), life)
        return numpy.flatnonzero(self.life == first)

    def when_there(self, queue: Array, at_us: Array) -> Array:
        """Return for each time the first time from then on at which the broker of the queue is up."""
        first = self.life[queue]
        for of_broker, from_us, to_us in self.away:
            is_away = (first == of_broker) & (at_us >= from_us) & (at_us < to_us)
            at_us = numpy.where(is_away, to_us, at_us)
        return at_us


@dataclass(frozen=True, slots=True)
class Starvation:
    """Spans of time in which a link has no credit, each with a cause."""

    link: Array
    from_us: Array
    to_us: Array
    cause: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedOutage:
    """An outage of a node or a connection that the generated link logs show.

    ``what``: the name of the router or broker, or the names of the two ends of a connection. ``is_orderly``: the node
    stops in order, and does not crash.
    """

    kind: str
    what: tuple[str, ...]
    from_us: int
    to_us: int
    cause: str
    is_orderly: bool = False


@dataclass(frozen=True, slots=True)
class DailyCycle:
    """The daily cycle of traffic: rates are multiplied by ``1 + depth * cos(...)``, greatest ``peak_us`` after midnight
    UTC.
    """

    depth: float
    peak_us: int


@dataclass(frozen=True)
class LogPlan:
    """A whole plan from which link logs are generated.

    All rates are multiplied by ``rate_factor``. ``file_us``: the longest span of time in one file.
    """

    mesh: str
    begins_us: int
    ends_us: int
    lives: tuple[PlannedRun, ...]
    links: Links
    traffic: PlannedTraffic
    routes: Routes
    pieces: PlannedRates
    queues: PlannedQueues
    starvation: Starvation
    stalls: Starvation
    """Spans in which a consumer has no credit, so that its copies of pre-settled messages are not sent."""
    outages: tuple[PlannedOutage, ...]
    day: DailyCycle
    rate_factor: float
    file_us: int

    @cached_property
    def life_ends_us(self) -> Array:
        return numpy.array([life.ends_us for life in self.lives], numpy.int64)

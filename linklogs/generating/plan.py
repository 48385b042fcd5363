"""The plan of generated logs: the nodes that record, the links, the messages over the links, and all other events.

Tables are columns of numpy arrays, all of one length; a place in one table stands for the same row in others. Times are
us of UTC, by a correct clock.
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
"""Place of the missing link: no consumer had the delivery, or no link brought it."""
NO_LIFE: Final = -1
"""The life of a queue at a broker that records nothing."""
NO_QUEUE: Final = -1


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a node: from its start to its end, or to the end of the plan.

    ``rows`` are records of kinds other than deliveries, traffic and messages, in order of time; the state in a row
    lasts until ``until_us`` at the same place, and is in all snapshots until then.
    ``skew_us``: how far the clock is ahead at the start; ``steps``: when the clock is set later, and by how much.
    ``lost``: times without room for records, from and until.
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
        """How far the clock is ahead at these times."""
        if not self.steps:
            return numpy.broadcast_to(numpy.int64(self.skew_us), at_us.shape)
        when, by_us = (numpy.array([each[i] for each in self.steps], numpy.int64) for i in (0, 1))
        ahead_us = self.skew_us + numpy.concatenate([[0], numpy.cumsum(by_us)]).astype(numpy.int64)
        found: Array = ahead_us[numpy.searchsorted(when, at_us, side="right")]
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """The first is NO_LINK. ``number`` is the number in records; the other columns are for the truth."""

    life: Array
    number: Array
    address: Array
    role: tuple[str, ...]
    user: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedTraffic:
    """Traffic by address. Logarithms are natural, of bytes and us; shares are of 1."""

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
    """Records of one message: the node that writes each, with its links.

    ``gone_us`` from the first router to this one; ``ahead_us`` from this router to the last, one way. ``pace``: the
    share of the message's time at consumers that goes into this record.
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
    """Successive links for messages, as long as all of the links exist.

    Steps of route ``i``: from ``first[i]`` to ``first[i + 1]``. ``is_cut``: at ``ends_us`` the route breaks, and
    messages under way come in doubt; otherwise all are settled before. ``source``: the queue that messages leave; the
    queues that messages enter are ``into[into_first[i]:into_first[i + 1]]``.
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
    """Rates of messages on a route, from one time until another. ``rate_per_s``: out of a queue, the share."""

    route: Array
    from_us: Array
    to_us: Array
    rate_per_s: Array


@dataclass(frozen=True, slots=True)
class PlannedQueues:
    """``wait_log``: logarithm of us between entering and leaving the queue, when there is a consumer.

    ``life`` is the first life of the queue's broker; ``later``: later lives, each (first, later, begins_us), in order;
    ``away``: times without a life, (first, from_us, to_us).
    ``expired``, ``dead_lettered``: shares. ``grave``: the queue for dead letters, NO_QUEUE if there is none here.
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
        """The queues of a broker in one of its lives."""
        first = next((of_broker for of_broker, later, _ in self.later if later == life), life)
        return numpy.flatnonzero(self.life == first)

    def when_there(self, queue: Array, at_us: Array) -> Array:
        """The same times, or else when the broker is back."""
        first = self.life[queue]
        for of_broker, from_us, to_us in self.away:
            is_away = (first == of_broker) & (at_us >= from_us) & (at_us < to_us)
            at_us = numpy.where(is_away, to_us, at_us)
        return at_us


@dataclass(frozen=True, slots=True)
class Starvation:
    """A link without credit, from one time until another."""

    link: Array
    from_us: Array
    to_us: Array
    cause: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedOutage:
    """``what`` are names: of a router or broker, or of the two ends of a link.

    ``is_orderly``: a node is stopped in order.
    """

    kind: str
    what: tuple[str, ...]
    from_us: int
    to_us: int
    cause: str
    is_orderly: bool = False


@dataclass(frozen=True, slots=True)
class DailyCycle:
    """Traffic by the time of day: ``1 + depth * cos`` of it, most at ``peak_us`` after midnight."""

    depth: float
    peak_us: int


@dataclass(frozen=True)
class LogPlan:
    """``rate_factor`` is for all rates. ``file_us``: the longest time of a file."""

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
    """Times of consumers without credit, in which pre-settled messages are missed."""
    outages: tuple[PlannedOutage, ...]
    day: DailyCycle
    rate_factor: float
    file_us: int

    @cached_property
    def life_ends_us(self) -> Array:
        return numpy.array([life.ends_us for life in self.lives], numpy.int64)

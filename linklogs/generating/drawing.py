"""Draws the messages of a slice of time: route, size, latency and outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.random import Generator

from linklogs.generating.day import seconds
from linklogs.generating.plan import NO_QUEUE, OUTCOMES, Array, LogPlan
from recording.columns import RecordOutcome

ACCEPTED, REJECTED, RELEASED, MODIFIED, NONE = (
    OUTCOMES.index(word)
    for word in (
        RecordOutcome.ACCEPTED,
        RecordOutcome.REJECTED,
        RecordOutcome.RELEASED,
        RecordOutcome.MODIFIED,
        RecordOutcome.NONE,
    )
)
LARGEST = 2**32 - 1
"""Limit of bytes and of us: a slot of the ring takes no more."""
_TAIL = 1.6
"""Exponent of the Pareto tail of slow messages."""


@dataclass(frozen=True, slots=True)
class Messages:
    """``served_us``: from the last router to the consumer and back.

    ``tempo``: a factor of the ways between routers, about 1.

    ``cut_us``: when the message came in doubt, 0 for all others.
    """

    route: Array
    start_us: Array
    size_bytes: Array
    served_us: Array
    tempo: Array
    outcome: Array
    cut_us: Array

    def __len__(self) -> int:
        return len(self.route)


def draw(plan: LogPlan, random: Generator, from_us: int, to_us: int) -> Messages:
    """The messages that producers send between two times."""
    pieces, routes = plan.pieces, plan.routes
    active = numpy.flatnonzero((pieces.from_us < to_us) & (pieces.to_us > from_us))
    active = active[routes.source[pieces.route[active]] == NO_QUEUE]
    begin, end = numpy.maximum(pieces.from_us[active], from_us), numpy.minimum(pieces.to_us[active], to_us)
    expected = pieces.rate_per_s[active] * plan.rate_factor * seconds(plan.day, begin, end)
    counts = random.poisson(expected)
    span = numpy.repeat((end - begin).astype(float), counts)
    start_us = numpy.repeat(begin, counts) + (random.random(len(span)) * span).astype(numpy.int64)
    return on_routes(plan, random, numpy.repeat(pieces.route[active], counts), start_us)


def on_routes(
    plan: LogPlan, random: Generator, route: Array, start_us: Array, size_bytes: Array | None = None
) -> Messages:
    """Messages with drawn properties; ``size_bytes`` are given for messages from a queue."""
    count, address = len(route), plan.routes.address[route]
    tempo = numpy.exp(0.25 * random.standard_normal(count, numpy.float32))
    served_us = _served_us(plan, random, address)
    if size_bytes is None:
        size_bytes = _log_normal(random, plan.traffic.size_log[address], plan.traffic.size_spread[address])
    outcome = numpy.where(plan.routes.is_settled[route], NONE, _outcome(plan, random, address))
    return _ended(plan, random, Messages(route, start_us, size_bytes, served_us, tempo, outcome, _zeros(count)))


def ways_us(plan: LogPlan, messages: Messages) -> Array:
    """From the first router to the last and back."""
    ahead_us = plan.routes.steps.ahead_us[plan.routes.first[messages.route]]
    return (2 * ahead_us * messages.tempo).astype(numpy.int64)


def _ended(plan: LogPlan, random: Generator, drawn: Messages) -> Messages:
    """End each message with its route: a late message is in doubt if the route was cut, or else served faster."""
    ends_us, is_cut = plan.routes.ends_us[drawn.route], plan.routes.is_cut[drawn.route]
    room_us = ends_us - drawn.start_us - ways_us(plan, drawn)
    in_doubt = is_cut & (drawn.served_us > room_us)
    noticed_us = (random.random(len(drawn)) * 2000).astype(numpy.int64)
    return Messages(
        drawn.route,
        drawn.start_us,
        drawn.size_bytes,
        numpy.where(is_cut, drawn.served_us, numpy.clip(drawn.served_us, 1, numpy.maximum(room_us, 1))),
        drawn.tempo,
        numpy.where(in_doubt & (drawn.outcome != NONE), MODIFIED, drawn.outcome).astype(numpy.int8),
        numpy.where(in_doubt, ends_us + noticed_us, 0),
    )


def _served_us(plan: LogPlan, random: Generator, address: Array) -> Array:
    traffic = plan.traffic
    usual = _log_normal(random, traffic.took_log[address], traffic.took_spread[address])
    slow = numpy.flatnonzero(random.random(len(address), numpy.float32) < traffic.slow_share[address])
    factor = traffic.slow_factor[address[slow]] * (1 + random.pareto(_TAIL, len(slow)))
    usual[slow] = numpy.minimum(usual[slow] * factor, LARGEST // 4)
    return usual


def _log_normal(random: Generator, log: Array, spread: Array) -> Array:
    drawn = numpy.exp(log + spread * random.standard_normal(len(log)))
    return numpy.clip(drawn, 1, LARGEST // 8).astype(numpy.int64)


def _outcome(plan: LogPlan, random: Generator, address: Array) -> Array:
    """Drawn share by share, since few messages are not accepted."""
    traffic, drawn = plan.traffic, random.random(len(address))
    outcome = numpy.full(len(address), ACCEPTED, numpy.int8)
    bound = numpy.zeros(len(address))
    for code, share in ((REJECTED, traffic.rejected), (RELEASED, traffic.released), (MODIFIED, traffic.modified)):
        before, bound = bound, bound + share[address]
        outcome[(drawn >= before) & (drawn < bound)] = code
    return outcome


def _zeros(count: int) -> Array:
    return numpy.zeros(count, numpy.int64)

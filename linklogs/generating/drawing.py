"""Draws at random the messages of generated link logs: route, start, size, latency and outcome of each message."""

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
"""The greatest number of bytes and of us in a record: a slot of the flight recorder's ring has 32 bits for each."""
_TAIL = 1.6
"""Exponent of the Pareto tail of slow messages."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Drawn messages, as arrays with one element for each message.

    ``served_us``: time in us from the last router to the consumer and back.

    ``tempo``: factor, about 1, by which the transit times between routers are multiplied.

    ``cut_us``: time at which the delivery came in doubt because its route broke; 0 for all other messages.
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
    """Draw the messages that producers send from ``from_us`` to ``to_us``, a Poisson number on each route in use.

    Messages that leave queues are drawn elsewhere (`SimulatedQueues.fetch`).
    """
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
    """Draw size, latency and outcome for messages with a given route and start time.

    The sizes of messages from a queue are given in ``size_bytes``, because each message keeps its size.
    """
    count, address = len(route), plan.routes.address[route]
    tempo = numpy.exp(0.25 * random.standard_normal(count, numpy.float32))
    served_us = _served_us(plan, random, address)
    if size_bytes is None:
        size_bytes = _log_normal(random, plan.traffic.size_log[address], plan.traffic.size_spread[address])
    outcome = numpy.where(plan.routes.is_settled[route], NONE, _outcome(plan, random, address))
    return _ended(plan, random, Messages(route, start_us, size_bytes, served_us, tempo, outcome, _zeros(count)))


def ways_us(plan: LogPlan, messages: Messages) -> Array:
    """Return the transit time of each message in us, from its first router to the last and back."""
    ahead_us = plan.routes.steps.ahead_us[plan.routes.first[messages.route]]
    return (2 * ahead_us * messages.tempo).astype(numpy.int64)


def _ended(plan: LogPlan, random: Generator, drawn: Messages) -> Messages:
    """Fit each message into the lifetime of its route.

    If the route breaks before the message is settled, the message comes in doubt (outcome modified, unless
    pre-settled); if the route ends in order, the consumer's time is shortened so that the message is settled before.
    """
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
    """Draw the outcome of each message by the address's shares of rejected, released and modified; accepted
    otherwise.
    """
    traffic, drawn = plan.traffic, random.random(len(address))
    outcome = numpy.full(len(address), ACCEPTED, numpy.int8)
    bound = numpy.zeros(len(address))
    for code, share in ((REJECTED, traffic.rejected), (RELEASED, traffic.released), (MODIFIED, traffic.modified)):
        before, bound = bound, bound + share[address]
        outcome[(drawn >= before) & (drawn < bound)] = code
    return outcome


def _zeros(count: int) -> Array:
    return numpy.zeros(count, numpy.int64)

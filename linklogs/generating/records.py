"""Makes the delivery records of generated link logs: for each message, one at each router of the message's route."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from linklogs.generating.drawing import LARGEST, Messages
from linklogs.generating.missed_copies import MissedCopies, is_missed
from linklogs.generating.plan import PARTS, Array, LogPlan
from recording.columns import DeliveryPart

COPY = PARTS.index(DeliveryPart.COPY)


@dataclass(frozen=True, slots=True)
class Records:
    """Delivery records before clock errors and losses; ``incoming`` and ``outgoing`` are places of links in the
    plan.
    """

    incoming: Array
    outgoing: Array
    at_us: Array
    took_us: Array
    size_bytes: Array
    outcome: Array
    part: Array

    def __len__(self) -> int:
        return len(self.at_us)

    def take(self, places: Array) -> Records:
        return Records(*(getattr(self, name)[places] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class GeneratedRecords:
    """The records that a set of messages leaves at routers.

    ``step`` and ``message``: the place of each record's step of a route, and of its message. ``prevented_step``,
    ``prevented_message``: the same for records that do not exist because the node was gone, the route was cut, or the
    consumer had no credit. ``missed``: the copies not sent for want of credit.
    """

    records: Records
    step: Array
    message: Array
    prevented_step: Array
    prevented_message: Array
    missed: MissedCopies


def records(plan: LogPlan, messages: Messages) -> GeneratedRecords:
    step, message = _spread(plan, messages.route)
    steps, tempo = plan.routes.steps, messages.tempo[message]
    start_us = messages.start_us[message] + (steps.gone_us[step] * tempo).astype(numpy.int64)
    took_us = (messages.served_us[message] * steps.pace[step] + 2 * steps.ahead_us[step] * tempo).astype(numpy.int64)
    at_us = start_us + numpy.clip(took_us, 1, LARGEST)
    cut_us = messages.cut_us[message]
    at_us = numpy.where(cut_us > 0, numpy.minimum(at_us, cut_us), at_us)
    life, is_missed = steps.life[step], _is_missed(plan, messages, step, message, start_us)
    is_there = (at_us > start_us) & (at_us < plan.life_ends_us[life]) & ~is_missed
    made = Records(
        steps.incoming[step],
        steps.outgoing[step],
        at_us,
        at_us - start_us,
        messages.size_bytes[message],
        messages.outcome[message],
        steps.part[step],
    )
    missed = MissedCopies(life, steps.outgoing[step], start_us).take(is_missed)
    if is_there.all():
        return GeneratedRecords(made, step, message, step[:0], message[:0], missed)
    kept, gone = numpy.flatnonzero(is_there), numpy.flatnonzero(~is_there)
    return GeneratedRecords(made.take(kept), step[kept], message[kept], step[gone], message[gone], missed)


def _is_missed(plan: LogPlan, messages: Messages, step: Array, message: Array, start_us: Array) -> Array:
    """Tell which records are copies of pre-settled messages that a running router could not send for want of credit."""
    found = numpy.zeros(len(step), bool)
    if len(plan.stalls.link):
        steps = plan.routes.steps
        is_copy = (steps.part[step] == COPY) & plan.routes.is_settled[messages.route[message]]
        copies = numpy.flatnonzero(is_copy & (start_us < plan.life_ends_us[steps.life[step]]))
        found[copies] = is_missed(plan, steps.outgoing[step[copies]], start_us[copies])
    return found


def by_life(life: Array, made: Records, lives: int) -> list[tuple[int, Records]]:
    """Group records by the node's run that writes them; each group is in order of time, and empty groups are left
    out.
    """
    order = numpy.argsort(life.astype(numpy.uint16), kind="stable")
    bounds = numpy.searchsorted(life[order], numpy.arange(lives + 1))
    found = [(i, order[bounds[i] : bounds[i + 1]]) for i in range(lives) if bounds[i] < bounds[i + 1]]
    return [(i, made.take(places[_in_time(made.at_us[places])])) for i, places in found]


def _in_time(at_us: Array) -> Array:
    # Sorting distinct keys (time and index) is twice as fast as `argsort`, and gives the same order on every machine.
    bits = len(at_us).bit_length()
    keys: Array = ((at_us - at_us.min()) << bits) | numpy.arange(len(at_us))
    keys.sort()
    return keys & ((1 << bits) - 1)


def _spread(plan: LogPlan, route: Array) -> tuple[Array, Array]:
    """Return two arrays with an element for each step of each message's route: places of the step and the message."""
    first = plan.routes.first[route]
    counts = plan.routes.first[route + 1] - first
    message = numpy.repeat(numpy.arange(len(route)), counts)
    ends = numpy.cumsum(counts)
    step = numpy.arange(len(message)) - numpy.repeat(ends - counts, counts) + first[message]
    return step, message

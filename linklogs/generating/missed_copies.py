"""Finds, in generated traffic, copies of pre-settled messages that a router does not send because the consumer has no
credit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from linklogs.generating.plan import Array, LogPlan

STALLED = "stalled"
_SECOND_US = 1_000_000
_TIME_BITS = 45
"""Bits of a key for the time in us since the plan's beginning: enough for a year."""


@dataclass(frozen=True, slots=True)
class MissedCopies:
    """Copies of pre-settled messages that were not sent, as arrays with an element for each copy.

    ``life``: the place of the run of the node that records the miss. ``link``: the place of the outgoing link.
    """

    life: Array
    link: Array
    at_us: Array

    def take(self, places: Array) -> MissedCopies:
        return MissedCopies(self.life[places], self.link[places], self.at_us[places])


def is_missed(plan: LogPlan, link: Array, at_us: Array) -> Array:
    """Tell for each copy whether its outgoing link is without credit (a stall of the plan) at the time of sending."""
    stalls = plan.stalls
    if not len(stalls.link):
        return numpy.zeros(len(link), bool)
    begins = _key(plan, stalls.link, stalls.from_us)
    order = numpy.argsort(begins)
    place = numpy.searchsorted(begins[order], _key(plan, link, at_us), side="right") - 1
    stall = order[numpy.maximum(place, 0)]
    found: Array = (place >= 0) & (stalls.link[stall] == link) & (at_us < stalls.to_us[stall])
    return found


def by_second(missed: MissedCopies, ends_us: int) -> tuple[Array, Array, Array]:
    """Count missed copies by link and second; return arrays with the link, the time and the count of each record.

    A record's time is the end of its second, but before ``ends_us``, the end of the node's run.
    """
    second = missed.at_us // _SECOND_US
    pairs, counts = numpy.unique(numpy.stack([missed.link, second]), axis=1, return_counts=True)
    return pairs[0], numpy.minimum((pairs[1] + 1) * _SECOND_US, ends_us - 1), counts


def _key(plan: LogPlan, link: Array, at_us: Array) -> Array:
    key: Array = (link << _TIME_BITS) + numpy.clip(at_us - plan.begins_us, 0, (1 << _TIME_BITS) - 1)
    return key

"""Sums similar deliveries within a second into one record, as nodes do at record level summary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from linklogs.generating.plan import Array
from linklogs.generating.records import Records

SECOND_US = 1_000_000
_SHIFT = 4
_SUBDIVISIONS = 1 << _SHIFT


@dataclass(frozen=True, slots=True)
class Seconds:
    """Summed records, each of ``count`` similar deliveries of one second.

    ``records.at_us`` is the end of the second, ``records.took_us`` the longest time of a delivery, and
    ``records.size_bytes`` the size of all deliveries.
    """

    records: Records
    count: Array


def buckets_of(took_us: Array) -> Array:
    """Return the histogram bucket of each time in us, like `bucket_of` in recording/columns.py for one time."""
    octave = numpy.frexp(took_us.astype(numpy.float64))[1].astype(numpy.int64) - 1
    shift = numpy.maximum(octave - _SHIFT, 0)
    return numpy.where(
        took_us < _SUBDIVISIONS,
        took_us,
        _SUBDIVISIONS * (octave - _SHIFT + 1) + (took_us >> shift) - _SUBDIVISIONS,
    )


def summed(made: Records) -> Seconds:
    """Sum the records that agree in second, links, part, outcome and latency bucket into one each.

    The sums are in order of seconds, then of incoming links.
    """
    alike = (
        buckets_of(made.took_us),
        made.outcome,
        made.part,
        made.outgoing,
        made.incoming,
        made.at_us // SECOND_US,
    )
    order = numpy.lexsort(alike)
    ordered = [column[order] for column in alike]
    is_first = numpy.ones(len(order), bool)
    is_first[1:] = numpy.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    first = numpy.flatnonzero(is_first)
    records = made.take(order[first])
    added = Records(
        records.incoming,
        records.outgoing,
        (records.at_us // SECOND_US + 1) * SECOND_US,
        numpy.maximum.reduceat(made.took_us[order], first),
        numpy.add.reduceat(made.size_bytes[order], first),
        records.outcome,
        records.part,
    )
    return Seconds(added, numpy.diff(numpy.append(first, len(order))))

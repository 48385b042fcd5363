"""Histograms of latencies as arrays: buckets of many latencies, and percentiles of many histograms at once.

A pair is a bucket (a small range of latencies) and the bucket's count in one number, so that a histogram is a sequence
of 8-byte numbers. recording/columns.py defines the buckets.
"""

from __future__ import annotations

from typing import Final

import numpy

from linklogs.replay.codes import Numbers

BUCKETS: Final = 1024
"""A number above all numbers of buckets, for latencies of up to 63 bits."""
_COUNT_BITS: Final = 50
_COUNT: Final = (1 << _COUNT_BITS) - 1
_EXACT_OCTAVE: Final = 4


def bucket_of_each(took_us: Numbers) -> Numbers:
    """Return the histogram bucket of each latency in us, like `bucket_of` in recording/columns.py for one.

    Latencies must be below 2^53 us, which are centuries.
    """
    octave = numpy.maximum(numpy.frexp(took_us.astype(numpy.float64))[1] - 1, _EXACT_OCTAVE) - _EXACT_OCTAVE
    buckets: Numbers = 16 * octave.astype(numpy.int64) + (took_us >> octave)
    return buckets


def least_of_each(buckets: Numbers) -> Numbers:
    """Return the least latency of each bucket, in us."""
    octave = numpy.maximum(buckets // 16 - 1, 0)
    least: Numbers = numpy.where(buckets < 16, buckets, (16 + buckets % 16) << octave)
    return least


def wide_of_each(buckets: Numbers) -> Numbers:
    """Return the width of each bucket: its largest latency less its least, in us."""
    wide: Numbers = (numpy.int64(1) << numpy.maximum(buckets // 16 - 1, 0)) - 1
    return wide


def pairs_of(buckets: Numbers, counts: Numbers) -> Numbers:
    pairs: Numbers = (buckets << _COUNT_BITS) | counts
    return pairs


def buckets_of(pairs: Numbers) -> Numbers:
    buckets: Numbers = pairs >> _COUNT_BITS
    return buckets


def counts_of(pairs: Numbers) -> Numbers:
    counts: Numbers = pairs & _COUNT
    return counts


def percentile(pairs: Numbers, begins: Numbers, messages: Numbers, percent: int) -> Numbers:
    """Return a percentile of each histogram, by nearest rank, as the middle of the percentile's bucket in us.

    ``pairs`` has one histogram after the other, with rising buckets; each begins at one of ``begins``, and counts as
    many messages as ``messages`` says.
    """
    seen = numpy.cumsum(counts_of(pairs))
    before = seen[begins] - counts_of(pairs[begins])
    rank = (messages * percent + 99) // 100
    found = buckets_of(pairs[numpy.searchsorted(seen, before + rank)])
    middle: Numbers = least_of_each(found) + wide_of_each(found) / 2
    return middle

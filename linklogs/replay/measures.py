"""Computes the measures in traffic tables from sums with histograms: messages, bytes, rates, outcomes, and latency.

A percentile of latency is by nearest rank, and the middle of its bucket of latencies: off by a small share at most (see
BUCKET_ERROR in recording/columns.py). The largest latency is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow

from linklogs.replay.codes import OUTCOMES, WHAT_BITS, Numbers
from linklogs.replay.groups import Groups
from linklogs.replay.histograms import BUCKETS, buckets_of, counts_of, pairs_of, percentile
from linklogs.replay.sums import Sums

PERCENTS: Final = (50, 95, 99)
MEASURES: Final = {
    "messages": "long",
    "size_bytes": "long",
    "messages_per_s": "double",
    "bytes_per_s": "double",
    **dict.fromkeys(OUTCOMES, "long"),
    **{f"p{percent}_us": "double" for percent in PERCENTS},
    "max_us": "long",
}


@dataclass(frozen=True, slots=True)
class GroupMeasures:
    """Groups of ``sums`` with equal keys, and the histogram of latencies of each group, for the measures of each group.

    ``pairs``: the histograms of the groups, one after the other; each begins at one of ``begins``.
    """

    sums: Sums
    groups: Groups
    pairs: Numbers
    begins: Numbers

    @property
    def keys(self) -> Numbers:
        return self.groups.keys

    def __len__(self) -> int:
        return len(self.groups)

    def columns(self, seconds: float) -> dict[str, pyarrow.Array]:
        """Return the columns of MEASURES, with a row for each group; ``seconds`` is the time for rates."""
        messages, longest_us = self.groups.added(self.sums.messages), self.groups.largest(self.sums.longest_us)
        size_bytes = self.groups.added(self.sums.size_bytes)
        percentiles = {
            f"p{percent}_us": numpy.minimum(percentile(self.pairs, self.begins, messages, percent), longest_us)
            for percent in PERCENTS
        }
        columns = {
            "messages": messages,
            "size_bytes": size_bytes,
            "messages_per_s": numpy.round(messages / seconds, 3),
            "bytes_per_s": numpy.round(size_bytes / seconds, 3),
            **dict(zip(OUTCOMES, self._outcomes(), strict=True)),
            **percentiles,
            "max_us": longest_us,
        }
        return {name: pyarrow.array(values) for name, values in columns.items()}

    def added(self) -> Sums:
        """Return the groups as sums without windows; all rows of a group must agree in run, side, both links and
        outcome.
        """
        first = self.groups.order[self.groups.begins]
        return Sums(
            run=self.sums.run[first],
            side=self.sums.side[first],
            link=self.sums.link[first],
            other=self.sums.other[first],
            what=self.sums.what[first],
            window=numpy.zeros(len(self), numpy.int64),
            messages=self.groups.added(self.sums.messages),
            size_bytes=self.groups.added(self.sums.size_bytes),
            longest_us=self.groups.largest(self.sums.longest_us),
            begins=self.begins,
            pairs=self.pairs,
        )

    def of_pairs(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return, for each bucket of all histograms, the key of the group, the bucket and its count."""
        lengths = numpy.diff(self.begins, append=len(self.pairs))
        return numpy.repeat(self.keys, lengths), buckets_of(self.pairs), counts_of(self.pairs)

    def _outcomes(self) -> Numbers:
        """Return the number of messages as an array with a row for each outcome and a column for each group."""
        place = (self.groups.places() << WHAT_BITS) + self.sums.what
        counts = numpy.bincount(place, self.sums.messages, len(self) << WHAT_BITS)
        by_outcome: Numbers = counts.astype(numpy.int64).reshape(-1, 1 << WHAT_BITS).T[: len(OUTCOMES)]
        return by_outcome


def measured(sums: Sums, keys: Numbers) -> GroupMeasures:
    groups = Groups.by(keys)
    owner = numpy.repeat(groups.places(), sums.lengths())
    of_pairs = Groups.by(owner * BUCKETS + buckets_of(sums.pairs))
    pairs = pairs_of(of_pairs.keys % BUCKETS, of_pairs.added(counts_of(sums.pairs)))
    begins = numpy.searchsorted(of_pairs.keys // BUCKETS, numpy.arange(len(groups)))
    return GroupMeasures(sums, groups, pairs, begins)

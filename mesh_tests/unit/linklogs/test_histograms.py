"""Histograms as arrays: the buckets are those of the schema, and percentiles those of a sorted list."""

from __future__ import annotations

import math

import numpy
import pytest

from linklogs.replay.codes import Numbers
from linklogs.replay.groups import Groups
from linklogs.replay.histograms import bucket_of_each, least_of_each, pairs_of, percentile, wide_of_each
from recording.columns import BUCKET_ERROR, bounds_of, bucket_of

EDGES = [value for power in range(4, 52) for value in (2**power - 1, 2**power, 2**power + 1, 3 * 2 ** (power - 1))]


def test_the_bucket_of_each_is_that_of_the_schema_at_every_edge() -> None:
    took = numpy.array([*range(40), *EDGES])
    assert bucket_of_each(took).tolist() == [bucket_of(int(each)) for each in took]


def test_the_bounds_of_each_bucket_are_those_of_the_schema() -> None:
    buckets = numpy.arange(bucket_of(2**52))
    least, wide = least_of_each(buckets), wide_of_each(buckets)
    assert list(zip(least.tolist(), (least + wide).tolist(), strict=True)) == [bounds_of(int(b)) for b in buckets]


def pairs(took: Numbers) -> Numbers:
    groups = Groups.by(bucket_of_each(took))
    return pairs_of(groups.keys, groups.lengths())


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_percentiles_of_many_histograms_are_each_its_own(percent: int) -> None:
    random = numpy.random.default_rng(7)
    many = [random.lognormal(7, 2, size).astype(numpy.int64) for size in (1, 2, 3, 100, 1, 5000)]
    made = [pairs(took) for took in many]
    begins = numpy.cumsum([0, *map(len, made[:-1])])
    found = percentile(numpy.concatenate(made), begins, numpy.array([len(took) for took in many]), percent)
    for took, told in zip(many, found, strict=True):
        exact = numpy.sort(took)[math.ceil(len(took) * percent / 100) - 1]
        assert abs(told - exact) <= max(0.5, exact * BUCKET_ERROR)

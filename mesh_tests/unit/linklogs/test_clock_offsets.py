"""Which records were written before a clock was set, and which after? From their times and their order alone."""

import numpy
import pyarrow
import pytest

from linklogs.replay.clock_offsets import ClockOffsets, OffsetChange, periods

S = 1_000_000
MS = 1000


def walked(random: numpy.random.Generator, gap_us: int) -> tuple[numpy.ndarray, numpy.ndarray, list[OffsetChange]]:
    """What records tell, after how many steps they were written, and the steps: none comes back to what was before."""
    count = 2000
    true_us = numpy.cumsum(random.integers(1, gap_us, count)) + 1000 * S
    steps = numpy.sort(random.choice(numpy.arange(1, 9), random.integers(1, 4), replace=False)) * count // 10
    period = numpy.zeros(count, numpy.int64)
    told_us, switches = true_us.copy(), []
    for number, place in enumerate(steps, 1):
        by_us = int(random.choice([-1, 1]) * random.integers(60 * MS, (true_us[place] - true_us[place - 100]) // 2))
        period[place:] = number
        told_us[place:] += by_us
        set_us = int(random.integers(true_us[place - 1] + 1, true_us[place] + 1))
        switches.append(OffsetChange(set_us + int(told_us[place] - true_us[place]), by_us))
    return told_us, period, switches


@pytest.mark.parametrize("seed", range(100))
def test_records_one_after_the_other_are_told_apart_exactly(seed: int) -> None:
    told_us, period, switches = walked(numpy.random.default_rng(seed), 20 * MS)
    assert (periods(told_us, switches) == period).all()


@pytest.mark.parametrize("seed", range(100))
def test_sparse_records_are_off_by_no_more_than_the_step_and_near_it_only(seed: int) -> None:
    """Where none is between, a step back leaves no trace in the order."""
    random = numpy.random.default_rng(seed)
    set_us, by_us = 1000 * S, -int(random.integers(60 * MS, 100 * S))
    true_us = numpy.sort(random.integers(0, 2000 * S, 20))
    is_after = true_us >= set_us
    told_us = true_us + is_after * by_us
    wrong = periods(told_us, [OffsetChange(set_us + by_us, by_us)]) != is_after
    assert (abs(true_us - set_us)[wrong] <= -by_us).all()
    if (numpy.diff(told_us) < 0).any():
        assert not wrong.any()


def test_what_was_taken_before_the_writer_noted_it_is_by_the_new_clock() -> None:
    before = numpy.arange(0, 100 * S, 100 * MS)
    after = numpy.arange(70 * S, 200 * S, 100 * MS)
    noted = OffsetChange(71 * S, -30 * S)
    found = periods(numpy.concatenate([before, after]), [noted])
    assert found.tolist() == [0] * len(before) + [1] * len(after)


def test_a_clock_that_is_set_back_leaves_nothing_in_doubt_far_from_that() -> None:
    told_us = numpy.array([0, 50 * S, 101 * S, 200 * S])
    assert periods(told_us, [OffsetChange(80 * S, -20 * S)]).tolist() == [0, 0, 1, 1]


def test_no_records_are_of_no_period() -> None:
    assert periods(numpy.zeros(0, numpy.int64), [OffsetChange(S, -S)]).tolist() == []


def test_a_run_whose_clock_is_right_is_left_as_it_is_beside_one_that_is_off() -> None:
    ahead = ClockOffsets({1: 40 * S})
    one, other, both = (pyarrow.table({"run": runs}) for runs in ([1, 1], [2, 2], [1, 2]))
    assert (ahead.of(one), ahead.of(other)) == (40 * S, 0)
    assert numpy.asarray(ahead.of(both)).tolist() == [40 * S, 0]
    assert ClockOffsets({}).of(one) == 0

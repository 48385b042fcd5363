"""Clocks from differences between pairs of runs, and from what they say of themselves."""

import random

import pytest

from linklogs.replay.clocks import OffsetSince, history
from linklogs.replay.steps import STEP_US, RunClockReading, steps_of
from linklogs.replay.ties import ClockDifference, ClockTies, NeighborChange, Run, seen_differences

S = 1_000_000


def solved(*differences: tuple[str, str, float]) -> dict[str, int]:
    ties = ClockTies()
    ties.add(ClockDifference((one, 1), (other, 1), us, 1) for one, other, us in differences)
    return {node: ahead for (node, _), ahead in ties.ahead_us().items()}


def test_the_one_that_differs_from_the_others_is_off() -> None:
    found = solved(("a", "b", 0.0), ("b", "c", 2_000_000.0), ("a", "c", 2_000_000.0))
    assert found == {"a": 0, "b": 0, "c": 2_000_000}


def test_differences_add_up_along_the_way() -> None:
    found = solved(("a", "b", 100.0), ("b", "c", 100.0), ("c", "d", 100.0), ("e", "d", -100.0))
    assert found == {"a": -200, "b": -100, "c": 0, "d": 100, "e": 200}


def test_nodes_that_nothing_ties_have_clocks_of_their_own() -> None:
    assert solved(("a", "b", 0.0), ("x", "y", 50.0)) == {"a": 0, "b": 0, "x": 0, "y": 50}


def test_nothing_is_known_of_nothing() -> None:
    assert solved() == {}


def test_what_is_told_first_counts_and_a_node_of_many_runs_counts_once() -> None:
    ties = ClockTies()
    ties.add([ClockDifference(("a", 1), ("b", 1), 5.0, 10)])
    ties.add([ClockDifference(("a", 1), ("b", 1), 900.0, 99), ClockDifference(("b", 1), ("c", 1), 0.0, 1)])
    ties.add(ClockDifference(("a", 1), ("a", run), 7.0 * run, 1) for run in range(2, 6))
    assert ties.ahead_us() == {
        ("a", 1): -5, ("a", 2): 9, ("a", 3): 16, ("a", 4): 23, ("a", 5): 30, ("b", 1): 0, ("c", 1): 0,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_random_clocks_are_found_from_random_pairs(seed: int) -> None:
    draw = random.Random(seed)
    true: dict[Run, int] = {(f"r{node}", run): draw.randrange(-100 * S, 100 * S) for node in range(9) for run in (1, 2)}
    runs = sorted(true)
    pairs = [(draw.choice(runs[:place]), runs[place]) for place in range(1, len(runs))]
    ties = ClockTies()
    ties.add(ClockDifference(one, other, true[other] - true[one], draw.randrange(1, 9)) for one, other in pairs)
    found = ties.ahead_us()
    assert ties.are_one(runs)
    assert len({true[run] - found[run] for run in runs}) == 1
    assert 0 in {found[run] for run in runs if run[1] == 2}


def seen(node: str, neighbor: str, *times: tuple[str, float], run: int = 1) -> list[NeighborChange]:
    return [NeighborChange(node, run, neighbor, event, round(at * S)) for event, at in times]


def test_neighbors_tell_what_clocks_differ_by_as_far_as_they_can() -> None:
    ones = seen("a", "b", ("opened", 10), ("closed", 100), ("opened", 130))
    later = seen("b", "a", ("opened", 70.5), ("closed", 160.2), ("opened", 190.4))
    [found] = seen_differences([*ones, *later])
    assert (found.one, found.other, found.samples) == (("a", 1), ("b", 1), 3)
    assert abs(found.us - 60 * S) <= S
    [found] = seen_differences([*ones, *seen("b", "a", ("opened", 10.9), ("closed", 100.3))])
    assert found.us == 0


def test_neighbors_that_only_one_end_tells_of_say_nothing() -> None:
    assert seen_differences(seen("a", "b", ("opened", 10))) == []
    assert seen_differences([*seen("a", "b", ("opened", 10)), *seen("b", "a", ("closed", 10))]) == []


def test_neighbors_whose_times_agree_on_nothing_say_nothing() -> None:
    ones, others = seen("a", "b", ("opened", 0), ("opened", 9)), seen("b", "a", ("opened", 3), ("opened", 6))
    assert seen_differences([*ones, *others]) == []


def test_runs_that_never_met_are_not_tied_by_neighbors() -> None:
    told = [
        *seen("a", "b", ("opened", 0), ("closed", 500), run=1),
        *seen("a", "b", ("opened", 700), ("closed", 900), run=2),
        *seen("b", "a", ("opened", 20.1), ("closed", 520.1), ("opened", 720.1), run=1),
        *seen("b", "a", ("opened", 2000), run=2),
    ]
    found = {(each.one[1], each.other[1]): each.us for each in seen_differences(told)}
    assert found == {(1, 1): 20.1 * S, (2, 1): 20.1 * S}


def test_a_clock_that_drifts_was_not_set() -> None:
    hour_us = 3600 * S
    assert steps_of(RunClockReading(hour * hour_us, hour * S) for hour in range(24)).steps == ()
    assert steps_of([RunClockReading(0, 0), RunClockReading(10 * S, STEP_US, is_change=True)]).steps == ()


def test_a_file_that_begins_with_the_note_is_no_step_back() -> None:
    note = RunClockReading(100 * S + 20 * S, 20 * S, is_change=True)
    begins = [RunClockReading(0, 0), RunClockReading(120 * S, 0), note, RunClockReading(220 * S, 20 * S)]
    assert [step.by_us for step in steps_of(begins).steps] == [20 * S]


@pytest.mark.parametrize("seed", range(50))
def test_random_steps_are_found_with_when_and_by_how_much(seed: int) -> None:
    draw = random.Random(seed)
    clock_us, at_us, readings, true = draw.randrange(10**15), 0, [], []
    for _ in range(draw.randrange(1, 12)):
        readings.append(RunClockReading(at_us + clock_us, clock_us))
        at_us += draw.randrange(S, 1000 * S)
        if draw.random() < 0.5:
            by_us = draw.choice((-1, 1)) * draw.randrange(STEP_US + 1, 10 ** draw.randrange(6, 12))
            clock_us += by_us
            true.append((at_us, by_us))
            readings.append(RunClockReading(at_us + clock_us, clock_us, is_change=True))
            at_us += draw.randrange(1, 1000 * S)
    draw.shuffle(readings)
    found = steps_of(readings)
    assert [(step.at_us - clock_us, step.by_us) for step in found.steps] == true
    assert {reading.clock_us: reading.clock_us - clock_us for reading in readings} == found.ahead_us
    assert found.first_us == -sum(by_us for _, by_us in true)


def test_the_table_tells_since_when_a_clock_was_ahead() -> None:
    before, after = ("r3", 100), ("r3", 900)
    steps = {before: steps_of([RunClockReading(0, 0), RunClockReading(220 * S, 20 * S, is_change=True)])}
    ahead_us = {before: 20 * S, after: 20 * S, ("r2", 100): -2 * S}
    assert list(history([("r1", 100), ("r2", 100), before, after], steps, ahead_us)) == [
        OffsetSince("r2", 100, None, None, -2 * S),
        OffsetSince("r3", 100, 200 * S, 20 * S, 20 * S),
    ]
    assert list(history([before, after], {}, {after: S})) == [OffsetSince("r3", 900, 900 - S, None, S)]

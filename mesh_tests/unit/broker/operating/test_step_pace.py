"""Steps of an operator's work on queues are short, whatever a message takes, and the work is the same in any steps."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.operating import administration
from broker.operating.numbered import FIRST_NUMBERS, PLACE_NUMBERS, STEP_PLACES, in_steps
from broker.operating.step_pace import FIRST_MESSAGES, LEAST_MESSAGES, STEP_S, StepPace
from mesh_tests.unit.broker.operating.test_administration import fill, left
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import Rig

THERE = "its-name-here"
PART, COUNT = 200, 300


class Clock:
    def __init__(self) -> None:
        self.now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


@given(costs_us=st.lists(st.integers(0, 5000), min_size=1), most=st.integers(1, 5000), same=st.integers(0, 5000))
def test_a_step_grows_slowly_and_soon_takes_its_time_whatever_the_messages_took_before(
    costs_us: list[int], most: int, same: int
) -> None:
    clock = Clock()
    pace = StepPace(clock)
    sizes = []

    def step(cost_us: int) -> float:
        sizes.append(pace.begin(most))
        clock.now_s += sizes[-1] * cost_us / 1e6
        pace.end()
        return sizes[-1] * cost_us / 1e6

    for cost_us in costs_us:
        step(cost_us)
    step(same)
    for _ in range(20):
        assert step(same) <= max(STEP_S, LEAST_MESSAGES * same / 1e6) * 1.001
    assert sizes[0] == min(FIRST_MESSAGES, most)
    assert all(min(LEAST_MESSAGES, most) <= size <= most for size in sizes)
    assert all(later <= 2 * max(size, LEAST_MESSAGES) or later == most for size, later in itertools.pairwise(sizes))
    if not same:
        assert sizes[-1] == most


@pytest.mark.parametrize("cost_us", [0, 30, 400])
@pytest.mark.parametrize("op", ["move", "purge", "redrive"])
def test_each_pause_is_short_and_each_message_is_done_once_in_order(
    rig: Rig, op: str, cost_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is the number of messages that have left the queue, times the cost of each."""
    monkeypatch.setattr(administration, "PART_MESSAGES", PART)
    fill(rig, COUNT)
    operator = Operator(rig)
    looks: list[float] = []

    def clock() -> float:
        departed = rig.queue("orders").queue.departed_total
        looks.append((departed["moved"] + departed["purged"]) * cost_us / 1e6)
        return looks[-1]

    rig.step_clock = clock
    arguments = {"move": {"source": "orders", "target": THERE}, "redrive": {"address": "orders", "to": THERE}}
    parts = operator.do(op, **arguments.get(op, {"address": "orders"}))
    pauses = [end - begin for begin, end in zip(looks[::2], looks[1::2], strict=True)]
    assert pauses[0] <= FIRST_MESSAGES * cost_us / 1e6 + 1e-9
    assert max(pauses[1:]) <= max(STEP_S, LEAST_MESSAGES * cost_us / 1e6) + 1e-9
    assert [part["messages"] for part in parts] == [PART, COUNT - PART]
    assert left(rig) == []
    there = rig.client("reader").consumer(THERE, credit=COUNT).bodies
    assert there == ([] if op == "purge" else list(range(COUNT)))


@pytest.mark.parametrize("cost_us", [0, 30, 400])
@pytest.mark.parametrize("op", ["move", "remove", "redrive"])
def test_each_pause_for_numbered_messages_is_short_and_cheap_ones_take_few_steps(
    rig: Rig, op: str, cost_us: int
) -> None:
    fill(rig, COUNT)
    operator = Operator(rig)
    (page,) = operator.do("browse", address="orders", limit=1)
    first = page["messages"][0]["number"]
    looks: list[float] = []

    def clock() -> float:
        departed = rig.queue("orders").queue.departed_total
        looks.append((departed["moved"] + departed["purged"]) * cost_us / 1e6)
        return looks[-1]

    rig.step_clock = clock
    arguments = {"move": {"source": "orders", "target": THERE}, "redrive": {"address": "orders", "to": THERE}}
    numbers = list(range(first, first + COUNT))
    (found,) = operator.do(op, numbers=numbers, **arguments.get(op, {"address": "orders"}))
    pauses = [end - begin for begin, end in zip(looks[::2], looks[1::2], strict=True)]
    assert found["messages"] == COUNT
    assert max(pauses) <= max(STEP_S, LEAST_MESSAGES * cost_us / 1e6) + 1e-9
    assert len(pauses) <= {0: 7, 30: 25, 400: -(-COUNT // LEAST_MESSAGES)}[cost_us]
    there = rig.client("reader").consumer(THERE, credit=COUNT).bodies
    assert there == ([] if op == "remove" else list(range(COUNT)))


@given(numbers=st.lists(st.integers(0, 5000) | st.integers(0, 2**40), min_size=1, max_size=1000))
def test_a_step_of_numbered_messages_is_at_few_places_of_the_queue(numbers: list[int]) -> None:
    pace = StepPace(lambda: 0.0, FIRST_NUMBERS)
    steps = []
    for step in in_steps(numbers, pace):
        steps.append(step)
        pace.end()
    assert [number for step in steps for number in step] == sorted(set(numbers))
    assert all(len({number // PLACE_NUMBERS for number in step}) <= STEP_PLACES for step in steps)
    assert len(steps[0]) <= FIRST_NUMBERS


def test_a_purge_in_short_steps_leaves_what_came_meanwhile(rig: Rig) -> None:
    fill(rig, 3 * FIRST_MESSAGES)
    operator, producer = Operator(rig), rig.client("another").producer("orders")
    rig.step_clock = lambda: rig.queue("orders").queue.departed_total["purged"] * STEP_S / FIRST_MESSAGES
    rig.is_disk_held = True
    operator.send('{"op": "purge", "address": "orders"}')
    rig.node.on_time(rig.now)
    assert rig.queue("orders").queue.departed_total["purged"] == FIRST_MESSAGES
    producer.send("later")
    rig.is_disk_held = False
    rig.run()
    assert left(rig) == ["later"]

"""Numbers of messages only rise from start to start, whatever the machine's clock says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import message_numbers
from broker.message_numbers import MOST_A_SECOND, NOTE, MessageNumbers, noting

NOW_S = 1_790_000_000.0
DAY_S = 86_400.0
RUNS = st.lists(st.tuples(st.floats(1_600_000_000, 2_000_000_000), st.floats(0, 30 * DAY_S), st.booleans()), max_size=9)


def least(folder: Path) -> int:
    return MessageNumbers(folder, NOW_S, lambda: 0.0).least


@given(RUNS)
def test_numbers_rise_over_starts_with_any_clock(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[float, float, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    highest = 0
    for wall_s, passed_s, is_killed in runs:
        now = 0.0
        numbers = MessageNumbers(folder, wall_s, lambda: now)  # noqa: B023
        begin = max(numbers.least, int((wall_s - message_numbers.START_OF_2020) * MOST_A_SECOND))
        assert begin >= highest
        numbers.note()
        highest = begin + int(passed_s * MOST_A_SECOND)
        if is_killed:
            # The last note was made a while before.
            now += max(0.0, passed_s - message_numbers.MARGIN_S)
            numbers.note()
        else:
            now += passed_s
            numbers.note(0.0)


def test_a_store_without_a_note_or_with_a_damaged_one_begins_by_the_clock(tmp_path: Path) -> None:
    assert least(tmp_path) == 1
    damaged = ("", "{}", "[1]", '{"below": -4}', '{"below": "7"}', '{"below": 1e300}', "\x00" * 20, "[" * 50_000)
    for text in damaged:
        (tmp_path / NOTE).write_text(text)
        assert least(tmp_path) == 1, text


def test_numbers_of_a_clock_far_ahead_are_noted_as_the_greatest_that_a_note_can_have(tmp_path: Path) -> None:
    MessageNumbers(tmp_path, 4_000_000_000.0, lambda: 0.0).note()
    assert least(tmp_path) == 2**53 - 1


def test_a_broker_notes_at_its_start_while_it_runs_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_numbers, "NOTED_EVERY_S", 0.001)
    now = 50.0

    async def live() -> list[int]:
        nonlocal now
        async with noting(MessageNumbers(tmp_path, NOW_S, lambda: now)):
            found = [least(tmp_path)]
            now += 1000.0
            while least(tmp_path) == found[0]:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            found.append(least(tmp_path))
        return [*found, least(tmp_path)]

    began, running, ended = asyncio.run(live())
    assert running - began == 1000 * MOST_A_SECOND
    assert running - ended == int(message_numbers.MARGIN_S) * MOST_A_SECOND


def test_a_note_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / NOTE).mkdir()
    MessageNumbers(tmp_path, NOW_S, lambda: 0.0).note()

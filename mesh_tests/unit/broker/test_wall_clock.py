"""Which time does a broker go by, when the clock was set while it did not run?"""

from pathlib import Path

import pytest

from broker.wall_clock import NOTE, ClockReading, read_clocks, settle_wall_time_s, wall_time_s

BOOT, ANOTHER = "boot", "another boot"
BEFORE = ClockReading(1_700_000_000.0, 1000.0, BOOT)
YEAR_S = 365 * 86400.0


@pytest.mark.parametrize("set_by_s", [-YEAR_S, -61.0, 61.0, YEAR_S])
def test_in_the_same_boot_a_clock_that_was_set_is_not_gone_by(set_by_s: float) -> None:
    assert wall_time_s(ClockReading(1_700_000_500.0 + set_by_s, 1500.0, BOOT), BEFORE) == 1_700_000_500.0


@pytest.mark.parametrize("set_by_s", [-59.0, 0.0, 59.0])
def test_a_clock_that_was_put_right_is_gone_by(set_by_s: float) -> None:
    assert wall_time_s(ClockReading(1_700_000_500.0 + set_by_s, 1500.0, BOOT), BEFORE) == 1_700_000_500.0 + set_by_s


def test_after_a_reboot_the_clock_may_have_gone_on_for_any_time() -> None:
    assert wall_time_s(ClockReading(BEFORE.wall_s + YEAR_S, 5.0, ANOTHER), BEFORE) == BEFORE.wall_s + YEAR_S


def test_after_a_reboot_a_clock_that_nobody_has_set_is_not_gone_by() -> None:
    assert wall_time_s(ClockReading(0.0, 5.0, ANOTHER), BEFORE) == BEFORE.wall_s


def test_after_a_reboot_a_clock_that_was_ahead_may_be_right_again() -> None:
    ahead = ClockReading(BEFORE.wall_s + YEAR_S, 50.0, BOOT)
    assert wall_time_s(ClockReading(BEFORE.wall_s + 100.0, 5.0, ANOTHER), ahead) == BEFORE.wall_s + 100.0


def test_where_a_boot_has_no_name_the_clock_is_gone_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("broker.wall_clock.BOOT_ID", tmp_path / "none")
    now = read_clocks()
    assert now.boot == ""
    assert wall_time_s(now, ClockReading(now.wall_s - YEAR_S, now.up_s, "")) == now.wall_s


def test_the_first_start_goes_by_the_clock(tmp_path: Path) -> None:
    assert settle_wall_time_s(tmp_path, BEFORE) == BEFORE.wall_s
    assert (tmp_path / NOTE).stat().st_mode & 0o777 == 0o600


def test_what_was_gone_by_is_gone_by_at_every_later_start(tmp_path: Path) -> None:
    settle_wall_time_s(tmp_path, BEFORE)
    for later_s in (100.0, 200.0):
        now = ClockReading(BEFORE.wall_s + YEAR_S + later_s, BEFORE.up_s + later_s, BOOT)
        assert settle_wall_time_s(tmp_path, now) == BEFORE.wall_s + later_s


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"wall_s": NaN, "up_s": 1, "boot": "boot"}', '{"wall_s": "x"}'])
def test_a_note_that_says_nothing_is_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTE).write_text(text)
    assert settle_wall_time_s(tmp_path, BEFORE) == BEFORE.wall_s


def test_without_room_for_a_note_the_clock_is_gone_by(tmp_path: Path) -> None:
    assert settle_wall_time_s(tmp_path / "gone", BEFORE) == BEFORE.wall_s


def test_clocks_can_be_read() -> None:
    first, second = read_clocks(), read_clocks()
    assert first.boot == second.boot
    assert 0 < first.up_s <= second.up_s

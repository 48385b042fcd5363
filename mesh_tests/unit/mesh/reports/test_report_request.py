"""What options of a report mean, and what is said of those that mean nothing."""

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from linklogs.moments import TimeSpan
from linklogs.time_options import span_of
from mesh.reports import java, words
from mesh.reports.report_request import order_of, prepare, settings
from mesh.terminal.failure import CommandFailed
from mesh_tests.link_logs import START_US

UTC = ZoneInfo("UTC")
HOUR_US = 3_600_000_000


def options(**more: Any) -> dict[str, Any]:
    given = {
        "logs": "logs",
        "directory": Path("out"),
        "since": None,
        "until": None,
        "address": None,
        "tz": "UTC",
        "topology": None,
        "nickname": False,
    }
    return {**given, "window": 10.0, "master": "local[*]", "conf": (), **more}


def test_times_are_of_the_zone_unless_they_name_one() -> None:
    zurich = ZoneInfo("Europe/Zurich")
    assert span_of("2026-11-24T01:00", None, zurich) == TimeSpan(START_US, None)
    assert span_of(None, "2026-11-24T01:00+00:00", zurich) == TimeSpan(None, START_US + HOUR_US)


def test_a_time_that_is_none_is_said() -> None:
    with pytest.raises(
        ValueError,
        match="--from 'noon' is not a valid time: expected one such as 2026-11-24T13:00",
    ):
        span_of("noon", None, UTC)


def test_times_the_wrong_way_round_are_said() -> None:
    with pytest.raises(ValueError, match="expected an earlier --from"):
        span_of("2026-11-24T01:00", "2026-11-24T01:00", UTC)


def test_a_setting_may_have_an_equals_sign_in_its_value() -> None:
    assert settings(["spark.x=-Da=b"]) == (("spark.x", "-Da=b"),)


@pytest.mark.parametrize("pair", ["spark.x", "=1"])
def test_a_setting_without_a_name_or_value_is_said(pair: str) -> None:
    with pytest.raises(ValueError, match="is not a valid setting: expected NAME=VALUE"):
        settings([pair])


def test_a_zone_that_is_none_is_said() -> None:
    with pytest.raises(ValueError, match="--tz 'Mars/Olympus' is not a valid time zone"):
        order_of(options(tz="Mars/Olympus"))


@pytest.mark.parametrize("window", [0.0, -1.0, 367 * 86_400.0, float("inf"), float("nan")])
def test_a_window_of_nothing_or_of_for_ever_is_said(window: float) -> None:
    with pytest.raises(ValueError, match=r"--window is \S+ s: expected at least 0\.000001 s, and at most 366 days"):
        order_of(options(window=window))


def test_a_directory_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(CommandFailed, match=r"has thesis\.doc, which is not part of a report"):
        prepare(tmp_path)


def test_a_report_may_go_where_one_was(tmp_path: Path) -> None:
    prepare(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "summary.json").touch()
    prepare(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('openjdk version "21" 2023', 21)],
)
def test_the_version_of_java_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, said)))
    assert java.java_version() == version


def test_an_old_java_is_said_with_the_command_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "11.0.2"')))
    with pytest.raises(CommandFailed, match="is Java 11: a report needs Java 17 or newer") as failed:
        java.require_spark()
    assert "apt install default-jre-headless" in str(failed.value.fix)


def test_no_java_is_said_with_the_command_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CommandFailed, match=f"JAVA_HOME is {tmp_path}, where there is no bin/java") as failed:
        java.require_spark()
    assert failed.value.fix == "apt install default-jre-headless"


def test_no_pyspark_is_said_with_the_command_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "SPARK", ("pyspark_that_is_not_there",))
    with pytest.raises(CommandFailed, match="pyspark_that_is_not_there is not installed") as failed:
        java.require_spark()
    assert failed.value.fix == "pip install '.[spark]'"


def fake_java(directory: Path, said: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return directory


def test_figures_have_three_digits_and_their_unit() -> None:
    shown = [words.duration(value) for value in (None, 5, 1500, 2_345_678, 150e6, 7200e6, 200_000e6)]
    assert shown == ["-", "5 us", "1.5 ms", "2.35 s", "2.5 min", "2 h", "2.31 d"]
    assert [words.size(value) for value in (7, 1234, 5_600_000)] == ["7 bytes", "1.23 kB", "5.6 MB"]
    assert (words.rate(1234.5), words.rate(0.25), words.share(0.125)) == ("1,234", "0.25", "12.5 %")

"""The figures of the documents: read from what commands print, kept with their circumstances, shown on a page."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mesh_tests.bench.figures import __main__ as command
from mesh_tests.bench.figures.catalogue import CATALOGUE
from mesh_tests.bench.figures.model import (
    Circumstances,
    Figure,
    History,
    Measurement,
    NotMeasured,
    Result,
    Value,
    from_json,
    to_json,
)
from mesh_tests.bench.figures.page import page, show
from mesh_tests.bench.figures.readers import at, row, slowest_change

ROWS = [
    {"work": "1 router", "mode": "unsettled", "cpu_us_per_message": 1.2, "cpu_us_spread": [1.1, 1.5], "p99_us": 800},
    {"work": "1 router", "mode": "presettled", "cpu_us_per_message": 1.0},
]
THEN = Circumstances("aaaaaaa", "2 x CPU", "2026-11-01", 100.0)
NOW = Circumstances("bbbbbbb", "2 x CPU", "2026-11-02", 101.0)


def test_a_row_is_read_with_its_spread() -> None:
    assert row("1 router", "cpu_us_per_message", "unsettled")([ROWS]) == Value(1.2, 1.1, 1.5)
    assert row("1 router", "p99_us", "unsettled", scale=0.001)([ROWS]) == Value(0.8)


@pytest.mark.parametrize(
    "read",
    [
        row("1 router", "cpu_us_per_message"),
        row("2 routers", "cpu_us_per_message", "unsettled"),
        row("1 router", "p99_us", "presettled"),
    ],
    ids=["two rows", "no row", "no such key"],
)
def test_a_row_that_is_not_there_once_is_not_measured(read: object) -> None:
    with pytest.raises(NotMeasured):
        read([ROWS])  # type: ignore[operator]


def test_a_number_or_a_spread_is_read_at_a_path() -> None:
    documents = [{"a": {"b": {"median": 2.0, "least": 1.0, "most": 4.0}, "c": 3.0}}]
    assert at("a", "b")(documents) == Value(2.0, 1.0, 4.0)
    assert at("a", "c", scale=2.0)(documents) == Value(6.0)
    with pytest.raises(NotMeasured, match=r"a\.d"):
        at("a", "d")(documents)


def test_the_slowest_change_of_a_kind_is_read() -> None:
    changes = [
        {"what": "crash r1", "converged_ms": 4.0},
        {"what": "restart r1", "converged_ms": 9.0},
        {"what": "crash broker b1", "converged_ms": None},
        {"what": "cut r1 r2", "converged_ms": 20.0},
    ]
    assert slowest_change("crash", "restart")([{"changes": changes}]) == Value(9.0)
    with pytest.raises(NotMeasured):
        slowest_change("silence")([{"changes": changes}])


def test_documents_follow_each_other_in_any_form() -> None:
    assert command.documents_of('{"a": 1}\n{\n "b": 2\n}\n') == [{"a": 1}, {"b": 2}]
    for wrong in ("", "no JSON"):
        with pytest.raises(NotMeasured):
            command.documents_of(wrong)


def test_the_last_result_of_another_revision_stays_beside_the_new_one() -> None:
    first, again, other = (
        Result(Value(1.0), THEN),
        Result(Value(2.0), replace(THEN, date="2026-11-03")),
        Result(Value(3.0), NOW),
    )
    history = History(first).followed_by(again)
    assert history == History(again)
    history = history.followed_by(other)
    assert history == History(other, again)
    assert from_json(json.loads(json.dumps(to_json({"x": history})))) == {"x": history}


def test_the_page_has_value_spread_revision_and_the_value_before() -> None:
    figure = Figure("x", "a thing", "us", at("x"), "2 us")
    catalogue = [Measurement("Things", ("-m", "mesh", "bench", "forward", "--json"), (figure,))]
    text = page(catalogue, {"x": History(Result(Value(1.234, 1.1, 12.34), NOW), Result(Value(2.0), THEN))})
    assert "| a thing | **1.23 us (1.10 to 12.3)** | 2 us | bbbbbbb, 2026-11-02, 101 ms |" in text
    assert "| 2.00 us (aaaaaaa, 2026-11-01, 100 ms) |" in text
    assert "`amqpmesh bench forward`" in text
    assert "* 2 x CPU" in text
    assert "| a thing | not measured yet | 2 us |" in page(catalogue, {})


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (Value(656012.0), "/s", "656,012/s"),
        (Value(0.22), "us", "0.22 us"),
        (Value(13291.0, 13199.0, 13429.0), "instructions", "13,291 (13,199 to 13,429)"),
        (Value(0.0), "MB", "0 MB"),
    ],
)
def test_a_value_has_the_digits_that_count(value: Value, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_each_figure_of_the_catalogue_has_a_key_of_its_own() -> None:
    keys = [figure.key for measurement in CATALOGUE for figure in measurement.figures]
    assert len(keys) == len(set(keys))


def test_the_page_is_made_of_the_results_and_has_no_result_without_a_row() -> None:
    histories = from_json(json.loads(command.RESULTS.read_text()))
    assert histories.keys() <= {figure.key for measurement in CATALOGUE for figure in measurement.figures}
    assert command.PAGE.read_text() == page(CATALOGUE, histories)


@pytest.mark.parametrize("measurement", CATALOGUE, ids=lambda each: each.figures[0].key)
def test_the_options_of_each_command_exist(measurement: Measurement) -> None:
    """Click refuses an unknown option before `--help` is looked at, since options are read in order."""
    done = subprocess.run([sys.executable, *measurement.command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_word_that_no_key_has_is_refused() -> None:
    done = CliRunner().invoke(command.main, ["--only", "forwrad"])
    assert (done.exit_code, "no figure's key has 'forwrad'" in done.output) == (2, True)


def test_a_command_that_fails_is_named_and_keeps_the_other_results(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = Measurement("A", ("-c", 'print("{\\"x\\": 3}")'), (Figure("works", "works", "us", at("x")),))
    fails = Measurement("A", ("-c", "import sys; sys.exit('no disk')"), (Figure("fails", "fails", "us", at("x")),))
    monkeypatch.setattr(command, "CATALOGUE", (fails, works))
    monkeypatch.setattr(command, "RESULTS", tmp_path / "figures.json")  # type: ignore[operator]
    monkeypatch.setattr(command, "PAGE", tmp_path / "figures.md")  # type: ignore[operator]
    monkeypatch.setattr(command, "circumstances_now", lambda: NOW)
    done = CliRunner().invoke(command.main, [])
    assert done.exit_code == 1
    assert "not measured: exit code 1: no disk" in done.output
    assert from_json(json.loads(command.RESULTS.read_text())) == {"works": History(Result(Value(3.0), NOW))}
    assert "| works | **3.00 us** |" in command.PAGE.read_text()

"""Result tables as files that a spreadsheet may open."""

import csv
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import parquet

from linklogs.table_files import ordered, write

UTC_ZONE = ZoneInfo("UTC")


def cells(table: pa.Table, directory: Path, tz: ZoneInfo = UTC_ZONE) -> list[list[str]]:
    write(table, directory, "t", tz)
    with (directory / "t.csv").open(newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\tx", "\rx", "\n=1", " =1+1", "\uff1d1+1", "\uff20a"])
def test_what_begins_like_a_formula_gets_a_quote(tmp_path: Path, text: str) -> None:
    assert cells(pa.table({"user": [text]}), tmp_path) == [["'" + text]]


@pytest.mark.parametrize("text", ["a=1", "orders-1", "", " a", "  ", "'x", 'say "a, b"\nc'])
def test_other_text_stays_as_it_is(tmp_path: Path, text: str) -> None:
    assert cells(pa.table({"user": [text], "n": [1]}), tmp_path) == [[text, "1"]]


def test_negative_numbers_are_no_formulas(tmp_path: Path) -> None:
    assert cells(pa.table({"a": [-1], "b": [-1.5]}), tmp_path) == [["-1", "-1.5"]]


def test_times_are_of_the_zone_in_csv_and_of_utc_in_parquet(tmp_path: Path) -> None:
    at = datetime(2026, 11, 24, 12, 30, 0, 1234, tzinfo=UTC)
    table = pa.table({"window": pa.array([at], pa.timestamp("us", "UTC"))})
    assert cells(table, tmp_path, ZoneInfo("Europe/Zurich")) == [["2026-11-24T13:30:00.001+0100"]]
    assert parquet.read_table(tmp_path / "t.parquet")["window"].to_pylist() == [at]


def test_parquet_has_text_as_it_was(tmp_path: Path) -> None:
    cells(pa.table({"user": ["=1+1"]}), tmp_path)
    assert parquet.read_table(tmp_path / "t.parquet")["user"].to_pylist() == ["=1+1"]


def test_rows_are_in_order_of_time_and_then_the_busiest_first() -> None:
    table = ordered(pa.table({"window": [2, 1, 1], "messages": [9, 1, 5]}))
    assert table.to_pylist() == [
        {"window": 1, "messages": 5},
        {"window": 1, "messages": 1},
        {"window": 2, "messages": 9},
    ]

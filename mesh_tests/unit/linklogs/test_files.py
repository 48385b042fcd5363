"""What is read of files, as a worker of Spark gets them, and what is said of those that are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from linklogs.moments import TimeSpan
from linklogs.replay import files
from linklogs.replay.clock_offsets import RunClock
from linklogs.replay.file_slices import pieces
from linklogs.replay.state_rows import FILE, StateRows
from mesh_tests.link_logs import RUN, START_US, S, delivery, for_workers, node, write
from recording.columns import REPLACES_KEY, RUN_KEY, VERSION_KEY

ROWS = [node(), delivery(1, 1, 2), delivery(7, 1, 2)]


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Of the files themselves."""
    return [row for told in StateRows(TimeSpan())(iter([batch])) for row in told.to_pylist() if row["kind"] == FILE]


def told(*paths: Path) -> list[dict[str, Any]]:
    found = rows(for_workers(*paths))
    same = [
        {**row, "replaces": (row["replaces"] or "").replace("file:", "") or None}
        for row in rows(for_workers(*paths, is_handed_over=True))
    ]
    assert found == same
    return found


def notice(path: Path) -> str:
    [row] = told(path)
    said: str = row["notice"]
    return said


def test_a_file_tells_how_many_records_it_has_and_of_what_time(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", ROWS)
    [row] = told(path)
    assert (row["run"], row["count"], row["size_bytes"]) == (RUN, 3, path.stat().st_size)
    assert (row["at_us"], row["last_us"]) == (START_US, START_US + 7_000_000)
    assert (row["notice"], row["replaces"]) == (None, None)


def test_a_torn_file_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    assert notice(path).startswith(f"{path} is incomplete, or not a Parquet file: ")


def test_a_file_with_damage_within_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", ROWS)
    path.write_bytes(b"PAR1" + b"\xff" * 200 + path.read_bytes()[204:])
    said = notice(path)
    assert said.startswith(f"{path} is damaged: ")
    assert said.isprintable()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2", "has version 2 of the link log: expected at most 1"),
        ("new", "has version 'new' of the link log: expected a number"),
    ],
)
def test_a_version_that_is_not_ours_is_said(tmp_path: Path, version: str, said: str) -> None:
    path = write(tmp_path, "r1", ROWS, more={VERSION_KEY: version})
    assert notice(path).startswith(f"{path} {said}")


@pytest.mark.parametrize(
    ("columns", "metadata", "said"),
    [
        ({"a": [1]}, {}, "is not a link log: expected amqpmesh.link-log in its metadata"),
        ({"kind": ["node"]}, {VERSION_KEY: "1"}, "has no column at_us"),
        ({"kind": ["node"], "at_us": ["now"]}, {VERSION_KEY: "1"}, "at_us of type string: expected int64"),
    ],
)
def test_a_foreign_table_is_said_to_be_one(
    tmp_path: Path, columns: dict[str, list[object]], metadata: dict[str, str], said: str
) -> None:
    path = tmp_path / "9.parquet"
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    assert said in notice(path)


def test_columns_that_are_missing_or_new_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "9.parquet"
    table = pa.table({"kind": ["node"], "at_us": [1], "mood": ["fine"]}).replace_schema_metadata({VERSION_KEY: "1"})
    parquet.write_table(table, path)
    [row] = told(path)
    assert (row["notice"], row["count"], row["run"]) == (None, 1, None)


def test_a_merged_file_says_what_it_replaces(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", ROWS, more={REPLACES_KEY: '["1-1.parquet", "1-2.parquet"]'})
    [row] = told(path)
    assert row["replaces"].split("\n") == [f"{path.parent}/1-1.parquet", f"{path.parent}/1-2.parquet"]


OTHER_COLUMNS = [
    ("at_us", pa.array([1], pa.timestamp("us")), "a column at_us of type timestamp: expected int64"),
    ("took_us", pa.array([1], pa.uint64()), "a column took_us of type uint64: expected int64"),
    ("address", pa.array([b"a"], pa.binary()), "a column address of type byte_array: expected string"),
    ("count", pa.array([1.5], pa.float64()), "a column count of type double: expected int64"),
]


@pytest.mark.parametrize(("name", "column", "said"), OTHER_COLUMNS)
def test_a_column_that_is_something_else_is_said(tmp_path: Path, name: str, column: pa.Array, said: str) -> None:
    path = tmp_path / "9.parquet"
    columns = {"kind": ["node"], "at_us": [1], name: column}
    parquet.write_table(pa.table(columns).replace_schema_metadata({VERSION_KEY: "1"}), path)
    assert said in notice(path)


def test_a_column_that_is_there_twice_is_said(tmp_path: Path) -> None:
    path = tmp_path / "9.parquet"
    table = pa.table([["node"], [1], [2]], ["kind", "at_us", "at_us"]).replace_schema_metadata({VERSION_KEY: "1"})
    parquet.write_table(table, path)
    assert "column at_us twice" in notice(path)


def test_numbers_may_be_kept_as_times(tmp_path: Path) -> None:
    ours, path = write(tmp_path, "r1", ROWS), tmp_path / "9.parquet"
    columns = {"kind": ["credit"], "at_us": [1], "starved_us": pa.array([7], pa.duration("us"))}
    parquet.write_table(pa.table(columns).replace_schema_metadata({VERSION_KEY: "1"}), path)
    assert [row["notice"] for row in told(ours, path)] == [None, None]
    said = [row for batch in StateRows(TimeSpan())(iter([for_workers(ours, path)])) for row in batch.to_pylist()]
    assert 7 in [row["starved_us"] for row in said]


@pytest.mark.parametrize("text", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_may_be_kept_in_other_ways(tmp_path: Path, text: pa.DataType) -> None:
    ours, path = write(tmp_path, "r1", ROWS), tmp_path / "9.parquet"
    columns = {"kind": ["node"], "at_us": [1], "address": pa.array(["a"]).cast(text)}
    parquet.write_table(pa.table(columns).replace_schema_metadata({VERSION_KEY: "1"}), path)
    assert [row["notice"] for row in told(ours, path)] == [None, None]


@pytest.mark.parametrize("at_once_bytes", [0, 1 << 20])
def test_large_files_are_read_in_pieces_and_small_ones_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once_bytes: int
) -> None:
    monkeypatch.setattr(files, "AT_ONCE_BYTES", at_once_bytes)
    (row,) = told(write(tmp_path, "r1", ROWS))
    assert (row["notice"], row["count"]) == (None, 3)


def test_a_file_that_is_gone_by_now_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", ROWS)
    batch = for_workers(path)
    path.unlink()
    (row,) = rows(batch)
    assert row["notice"] == f"{path} cannot be read: No such file or directory"


def test_files_of_a_run_of_which_there_is_nothing_else_to_be_said_are_one_row(tmp_path: Path) -> None:
    paths = [write(tmp_path, "r1", [node(), delivery(second, 1, 2)], name=f"1-{second}") for second in (9, 1, 5)]
    (row,) = told(*paths)
    assert (row["count"], row["size_bytes"]) == (6, sum(path.stat().st_size for path in paths))
    assert (row["at_us"], row["last_us"]) == (START_US, START_US + 9_000_000)


@pytest.mark.parametrize(
    "more", [{REPLACES_KEY: "all"}, {REPLACES_KEY: "5"}, {REPLACES_KEY: "[5]"}, {RUN_KEY: "9" * 30}]
)
def test_what_a_file_says_of_itself_in_no_way_that_is_understood_is_nothing(
    tmp_path: Path, more: dict[str, str]
) -> None:
    [row] = told(write(tmp_path, "r1", ROWS, more=more))
    assert (row["notice"], row["replaces"], row["count"]) == (None, None, 3)


def test_rows_of_another_time_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", [delivery(second, 1, 2) for second in range(100)])
    table = parquet.read_table(path, partitioning=None)
    described = parquet.read_schema(path).metadata
    with parquet.ParquetWriter(path, table.schema.with_metadata(described)) as writer:
        for begin in range(0, 100, 10):
            writer.write_table(table.slice(begin, 10))
    [file] = files.files([for_workers(path)])
    assert isinstance(file, files.ReplayFile)

    def read(*span_s: int | None, clocks: dict[int, RunClock] | None = None) -> list[int]:
        span = TimeSpan(*(each if each is None else START_US + each * S for each in span_s))
        return [len(each.table) for each in pieces(file, clocks or {}, span)]

    assert sum(read(None, None)) == 100
    assert read(15, 35) == [10, 10, 10]
    assert read(95, None) == [10]
    assert read(None, 5) == [10]
    assert read(200, None) == []
    # Of a clock that is off nobody knows of which time they are before they are read.
    assert sum(read(15, 35, clocks={RUN: RunClock(60 * S)})) == 100

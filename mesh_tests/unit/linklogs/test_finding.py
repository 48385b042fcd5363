"""Which files are read, and what is said of the others."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from addressing.link_log import REPLACES_KEY, VERSION_KEY
from linklogs.finding import NoLogs, find
from linklogs.moments import HOUR_US, Span, parse_hour_us
from mesh_tests.link_logs import HOUR, START_US, delivery, node, write

ALL = Span()


ROWS = [node(), delivery(1, 1, 2), delivery(7, 1, 2)]


def written(root: Path, name: str = "r1", hour: str = HOUR) -> Path:
    return write(root, name, ROWS, hour=hour)


def again(root: Path, described: dict[str, str]) -> Path:
    """A second file beside the first, with more metadata."""
    return write(root, "r1", ROWS, name="2-0", more=described)


def test_all_files_are_read_by_their_root_when_nothing_else_lies_there(tmp_path: Path) -> None:
    written(tmp_path, "r1")
    written(tmp_path, "r2", hour="2026-11-24T01")
    found = find(str(tmp_path), ALL)
    assert found.paths() == [str(tmp_path)]
    assert (found.records, found.notices) == (6, ())


def test_a_footer_tells_the_time_of_its_records(tmp_path: Path) -> None:
    written(tmp_path)
    [footer] = find(str(tmp_path), ALL).footers
    assert (footer.first_us, footer.last_us) == (START_US, START_US + 7_000_000)


def test_a_torn_file_is_one_sentence_and_the_rest_is_read(tmp_path: Path) -> None:
    good = written(tmp_path)
    torn = good.with_name("2-0.parquet")
    torn.write_bytes(good.read_bytes()[:-20])
    found = find(str(tmp_path), ALL)
    assert found.paths() == [str(good)]
    assert len(found.notices) == 1
    assert found.notices[0].startswith(f"{torn} is torn, or no Parquet file: ")


@pytest.mark.parametrize("name", ["node=r1/hour=2026-11-24T00/notes.txt", "node=r1/other/a.parquet", "notes.txt"])
def test_what_is_of_no_link_log_is_named(tmp_path: Path, name: str) -> None:
    good = written(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x")
    found = find(str(tmp_path), ALL)
    assert found.paths() == [str(good)]
    assert len(found.notices) == 1
    assert "is not of a link log: expected" in found.notices[0]


@pytest.mark.parametrize("name", ["_truth.json", ".1-0.parquet", "node=r1/hour=2026-11-24T00/_1-0.parquet"])
def test_what_is_hidden_is_left_alone(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    (tmp_path / name).write_text("half a file")
    assert find(str(tmp_path), ALL).paths() == [str(tmp_path)]


def test_an_hour_that_is_none_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "node=r1" / "hour=noon").mkdir()
    assert "expected an hour such as" in find(str(tmp_path), ALL).notices[0]


def test_a_newer_schema_is_said_and_left_out(tmp_path: Path) -> None:
    good = written(tmp_path)
    again(tmp_path, {VERSION_KEY: "2"})
    found = find(str(tmp_path), ALL)
    assert found.paths() == [str(good)]
    assert "has version 2 of the link log: expected at most 1" in found.notices[0]


def test_a_version_that_is_no_number_is_said(tmp_path: Path) -> None:
    written(tmp_path)
    again(tmp_path, {VERSION_KEY: "new"})
    assert "has version 'new' of the link log: expected a number" in find(str(tmp_path), ALL).notices[0]


@pytest.mark.parametrize(
    ("columns", "metadata", "said"),
    [
        ({"a": [1]}, {}, "is no link log: expected amqpmesh.link-log in its metadata"),
        ({"kind": ["node"]}, {VERSION_KEY: "1"}, "has no column at_us"),
        ({"kind": ["node"], "at_us": ["now"]}, {VERSION_KEY: "1"}, "at_us of type BYTE_ARRAY: expected INT64"),
    ],
)
def test_a_foreign_table_is_said_to_be_one(
    tmp_path: Path, columns: dict[str, list[object]], metadata: dict[str, str], said: str
) -> None:
    good = written(tmp_path)
    table = pa.table(columns).replace_schema_metadata(metadata)
    parquet.write_table(table, good.with_name("9.parquet"))
    found = find(str(tmp_path), ALL)
    assert found.paths() == [str(good)]
    assert said in found.notices[0]


def test_columns_that_are_missing_or_new_are_no_fault(tmp_path: Path) -> None:
    good = written(tmp_path)
    table = pa.table({"kind": ["node"], "at_us": [1], "mood": ["fine"]}).replace_schema_metadata({VERSION_KEY: "1"})
    parquet.write_table(table, good.with_name("9.parquet"))
    assert find(str(tmp_path), ALL).paths() == [str(tmp_path)]


def test_files_that_a_merged_one_replaces_are_not_read_twice(tmp_path: Path) -> None:
    written(tmp_path)
    merged = again(tmp_path, {REPLACES_KEY: '["1-0.parquet"]'})
    found = find(str(tmp_path), ALL)
    assert (found.paths(), found.notices) == ([str(merged)], ())


@pytest.mark.parametrize(
    ("span", "hours"),
    [
        (Span(START_US + 2 * HOUR_US), ["01", "02", "03"]),
        (Span(None, START_US + HOUR_US), ["00"]),
        (Span(START_US + 2 * HOUR_US + 1, START_US + 3 * HOUR_US), ["01", "02"]),
        (Span(START_US - 1), ["00", "01", "02", "03"]),
    ],
)
def test_a_file_counts_for_the_hour_it_was_begun_in_and_the_next(tmp_path: Path, span: Span, hours: list[str]) -> None:
    for hour in range(4):
        written(tmp_path, hour=f"2026-11-24T{hour:02}")
    found = find(str(tmp_path), span)
    assert [Path(each.path).parent.name[-2:] for each in found.footers] == hours


def test_an_hour_is_of_utc() -> None:
    assert parse_hour_us(HOUR) == START_US


def test_an_empty_directory_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(NoLogs, match=f"^no link logs in {tmp_path}: expected node=NAME"):
        find(str(tmp_path), ALL)


def test_no_directory_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NoLogs, match="is no directory: expected one with link logs"):
        find(str(tmp_path / "nothing"), ALL)


def test_logs_of_another_time_only_are_said_to_be_so(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(NoLogs, match="no link logs of that time in"):
        find(str(tmp_path), Span(START_US + 5 * HOUR_US))


def test_where_all_files_are_bad_the_first_reason_is_told(tmp_path: Path) -> None:
    written(tmp_path).write_bytes(b"")
    with pytest.raises(NoLogs, match=r"nothing in .* can be read; the first reason of 1: .* is torn"):
        find(str(tmp_path), ALL)

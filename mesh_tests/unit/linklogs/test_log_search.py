"""Which files are read, and what is said of the others."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from linklogs.file_holds import is_local, local_path
from linklogs.log_search import FoundLogs, NoLogs, find
from linklogs.moments import HOUR_US, TimeSpan, parse_hour_us
from mesh_tests.link_logs import HOUR, START_US, delivery, node, write

ALL = TimeSpan()


ROWS = [node(), delivery(1, 1, 2), delivery(7, 1, 2)]


def written(root: Path, name: str = "r1", hour: str = HOUR) -> Path:
    return write(root, name, ROWS, hour=hour)


def paths(found: FoundLogs) -> list[str]:
    return [each.path for each in found.files]


def test_files_are_found_with_their_nodes_in_order(tmp_path: Path) -> None:
    later = written(tmp_path, "r2", hour="2026-11-24T01")
    first, second = written(tmp_path, "007"), written(tmp_path, "r2")
    found = find(str(tmp_path), ALL)
    assert (paths(found), found.notices) == ([str(first), str(second), str(later)], ())
    assert [each.node for each in found.files] == ["007", "r2", "r2"]
    assert [each.size_bytes for each in found.files] == [each.stat().st_size for each in (first, second, later)]


@pytest.mark.parametrize("name", ["node=r1/hour=2026-11-24T00/notes.txt", "node=r1/other/a.parquet", "notes.txt"])
def test_what_is_of_no_link_log_is_named(tmp_path: Path, name: str) -> None:
    good = written(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x")
    found = find(str(tmp_path), ALL)
    assert paths(found) == [str(good)]
    assert len(found.notices) == 1
    assert "is not part of a link log: expected" in found.notices[0]


@pytest.mark.parametrize("name", ["_truth.json", ".1-0.parquet", "node=r1/hour=2026-11-24T00/_1-0.parquet"])
def test_what_is_hidden_is_left_alone(tmp_path: Path, name: str) -> None:
    good = written(tmp_path)
    (tmp_path / name).write_text("half a file")
    found = find(str(tmp_path), ALL)
    assert (paths(found), found.notices) == ([str(good)], ())


def test_names_that_are_no_text_are_named_as_far_as_they_are(tmp_path: Path) -> None:
    first = written(tmp_path)
    hour = os.fsencode(first.parent)
    (Path(os.fsdecode(os.path.join(hour, b"\xff.parquet")))).touch()
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"node=\xfe"))
    found = find(str(tmp_path), ALL)
    assert paths(found) == [str(first)]
    assert found.notices == (
        f"{first.parent}/\\udcff.parquet has a name that is not valid text: expected UTF-8",
        f"{tmp_path}/node=\\udcfe has a name that is not valid text: expected UTF-8",
    )


@pytest.mark.parametrize("level", ["node", "hour"])
def test_a_directory_that_goes_while_it_is_looked_at_has_nothing_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """As when what is too old is taken away."""
    stays, goes = written(tmp_path, "r1"), written(tmp_path, "r2")
    gone = goes.parent if level == "hour" else goes.parent.parent
    scan = os.scandir

    def scandir(path: str | int) -> Any:
        if path == str(gone) and gone.exists():
            gone.rename(tmp_path / ".gone")
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = find(str(tmp_path), ALL)
    assert (paths(found), found.notices) == ([str(stays)], ())
    assert not gone.exists()


def test_a_directory_that_nobody_may_look_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stays, closed = written(tmp_path, "r1"), written(tmp_path, "r2").parent
    scan = os.scandir

    def scandir(path: str | int) -> Any:
        if not isinstance(path, int) and Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = find(str(tmp_path), ALL)
    assert paths(found) == [str(stays)]
    assert found.notices == (f"{closed} cannot be read: Permission denied",)


def test_an_hour_that_is_none_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "node=r1" / "hour=noon").mkdir()
    assert "expected an hour such as" in find(str(tmp_path), ALL).notices[0]


@pytest.mark.parametrize(
    ("span", "hours"),
    [
        (TimeSpan(START_US + 2 * HOUR_US), ["01", "02", "03"]),
        (TimeSpan(None, START_US + HOUR_US), ["00"]),
        (TimeSpan(START_US + 2 * HOUR_US + 1, START_US + 3 * HOUR_US), ["01", "02"]),
        (TimeSpan(START_US - 1), ["00", "01", "02", "03"]),
    ],
)
def test_a_file_counts_for_the_hour_it_was_begun_in_and_the_next(
    tmp_path: Path, span: TimeSpan, hours: list[str]
) -> None:
    for hour in range(4):
        written(tmp_path, hour=f"2026-11-24T{hour:02}")
    found = find(str(tmp_path), span)
    assert [Path(each).parent.name[-2:] for each in paths(found)] == hours


def test_an_hour_is_of_utc() -> None:
    assert parse_hour_us(HOUR) == START_US


def test_an_empty_directory_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(NoLogs, match=f"^no link logs in {tmp_path}: expected node=NAME"):
        find(str(tmp_path), ALL)


def test_where_a_writer_works_and_has_no_file_yet_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "_spool").mkdir()
    with pytest.raises(NoLogs, match=f"^no link logs in {tmp_path} yet: records become a file within"):
        find(str(tmp_path), ALL)


@pytest.mark.parametrize(
    ("path", "local"),
    [("logs", "logs"), ("/logs", "/logs"), ("file:/logs", "/logs"), ("file:///logs", "/logs"), ("a:b/c", "a:b/c")],
)
def test_paths_of_this_machine_are_known_however_they_are_written(path: str, local: str) -> None:
    assert is_local(path)
    assert local_path(path) == str(Path(local).absolute())


@pytest.mark.parametrize("path", ["hdfs:/logs", "hdfs://namenode:8020/logs", "s3a://bucket/logs"])
def test_paths_that_only_spark_reads_are_not_of_this_machine(path: str) -> None:
    assert not is_local(path)


@pytest.mark.parametrize("below", ["node=r1", f"node=r1/hour={HOUR}"])
def test_who_asks_for_a_node_or_an_hour_is_told_where_the_logs_are(tmp_path: Path, below: str) -> None:
    written(tmp_path)
    with pytest.raises(NoLogs, match=f"did you mean {tmp_path}\\?"):
        find(str(tmp_path / below), ALL)


def test_a_link_that_leads_nowhere_is_named_with_where(tmp_path: Path) -> None:
    good = written(tmp_path)
    (good.parent / "1-9.parquet").symlink_to("nowhere")
    found = find(str(tmp_path), ALL)
    assert paths(found) == [str(good)]
    assert found.notices == (f"{good.parent}/1-9.parquet is a link to nowhere, which does not exist",)


def test_where_logs_lie_one_directory_further_down_that_is_named(tmp_path: Path) -> None:
    written(tmp_path / "linklogs")
    (tmp_path / "control").mkdir()
    (tmp_path / "certs.pem").write_text("x")
    with pytest.raises(NoLogs, match=f"no link logs in {tmp_path}: did you mean {tmp_path}/linklogs\\?"):
        find(str(tmp_path), ALL)


def test_of_several_directories_with_logs_none_is_meant(tmp_path: Path) -> None:
    for name in ("shop", "demo"):
        written(tmp_path / name)
    with pytest.raises(NoLogs, match="can be read"):
        find(str(tmp_path), ALL)


def test_no_directory_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NoLogs, match="is not a directory: expected one with link logs"):
        find(str(tmp_path / "nothing"), ALL)


def test_logs_of_another_time_only_are_said_to_be_so(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(NoLogs, match="no link logs of that time in"):
        find(str(tmp_path), TimeSpan(START_US + 5 * HOUR_US))


def test_a_node_that_has_files_but_none_of_the_time_is_named(tmp_path: Path) -> None:
    written(tmp_path, "r1")
    written(tmp_path, "r2", hour="2026-11-23T04")
    written(tmp_path, "r2", hour="2026-11-23T05")
    found = find(str(tmp_path), TimeSpan(START_US, START_US + HOUR_US))
    assert found.notices == (
        f"{tmp_path / 'node=r2'} has files of 2026-11-23T04 to 2026-11-23T05 and none of the requested time: "
        "its node did not run then, or its clock was wrong",
    )
    assert find(str(tmp_path), ALL).notices == ()
    with pytest.raises(NoLogs, match="no link logs of that time"):
        find(str(tmp_path), TimeSpan(START_US + 5 * HOUR_US))


def test_what_two_times_have_in_common_ends_where_the_first_of_both_ends() -> None:
    assert TimeSpan(5, 20).within(TimeSpan(10, None)) == TimeSpan(10, 20)
    assert TimeSpan(None, 20).within(TimeSpan(None, 15)) == TimeSpan(None, 15)
    assert TimeSpan(5, 20).widened(3) == TimeSpan(2, 23)
    assert TimeSpan(None, 20).widened(3) == TimeSpan(None, 23)
    assert [each.length_us for each in (TimeSpan(5, 20), TimeSpan(20, 5), TimeSpan(5), ALL)] == [15, 0, 0, 0]

"""Merged files have all that was in those that they replace, once, whoever dies or reads meanwhile."""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from linklogs import compaction, private_files
from linklogs import live_files as finding
from linklogs.compaction import CompactionFailpoint, CompactReport, compact, reading
from linklogs.file_names import files_in
from linklogs.live_files import live_files
from linklogs.merge import merge
from linklogs.parquet import batch_of_rows, metadata, open_writer
from linklogs.writer.failpoints import WriterFailpoint
from mesh_tests.unit.linklogs.host import Crash, Host, rows_of
from mesh_tests.unit.linklogs.rings import RUN, START
from recording.columns import NODE_KEY, REPLACES_KEY, VERSION_KEY

LATER = datetime(2026, 11, 24, 1, 5, tzinfo=UTC)
LINK = {"kind": "link", "event": "opened", "link": 7, "address": "orders"}


@pytest.fixture
def logs(host: Host) -> Path:
    """Five files of r1, one of r2; a link of r1 that is open all the time."""
    node, other = host.node(), host.node("r2")
    other.delivery(100)
    node.text(**LINK)
    for number in range(5):
        node.delivery(number, START + 1000 * number)
        node.delivery(50 + number, START + 1000 * number, kind=2)
        host.step(after_s=61)
        host.step(after_s=61)
    host.stop()
    return host.out


def what_happened(directory: Path) -> Counter[str]:
    """Without what each file opens with."""
    rows = [row for path in live_files(directory) for row in rows_of(path)]
    return Counter(str(sorted(row.items())) for row in rows if row.get("event") != "live")


def all_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.parquet"))


def crashed(directory: Path) -> None:
    def crash(_: CompactionFailpoint) -> None:
        raise Crash

    with pytest.raises(Crash):
        compact(directory, LATER, crash)


def test_files_of_an_hour_that_is_over_become_one_of_each_node(logs: Path) -> None:
    before = what_happened(logs)
    sizes = [path.stat().st_size for path in all_files(logs)]
    report = compact(logs, LATER)
    after = [path.stat().st_size for path in all_files(logs)]
    assert report == CompactReport(logs, 1, 6, 2, sum(sizes), sum(after), ())
    assert len(after) == 2
    assert what_happened(logs) == before
    assert sum(before.values()) == 12
    assert {path.stat().st_mode & 0o777 for path in all_files(logs)} == {0o640}


def test_the_first_snapshot_is_kept_and_of_the_others_the_node(logs: Path) -> None:
    compact(logs, LATER)
    merged = next(path for path in live_files(logs) if "node=r1" in str(path))
    live = [(row["kind"], row["at_us"]) for row in rows_of(merged) if row.get("event") == "live"]
    assert live == [("node", RUN), *(("node", RUN + 1000 * number + 5) for number in range(1, 5))]


def test_what_was_told_late_as_live_is_kept(host: Host) -> None:
    node = host.node()
    for number in range(3):
        node.delivery(number)
        if number == 1:
            node.text(**LINK | {"event": "live", "link": 9}, at_us=START + 500)
            node.text(kind="neighbor", event="live", neighbor="r2", cost=3, at_us=START + 500)
        host.step(after_s=61)
        host.step(after_s=61)
    host.stop()
    before = told_of(host.out)
    assert {("link", 9, None), ("neighbor", None, "r2")} <= before
    assert compact(host.out, LATER).hours == 1
    assert told_of(host.out) == before


def told_of(directory: Path) -> set[tuple[Any, ...]]:
    rows = [row for path in live_files(directory) for row in rows_of(path)]
    return {(row["kind"], row.get("link"), row.get("neighbor")) for row in rows if row.get("event") == "live"}


def test_a_snapshot_of_each_run_is_kept_and_no_other(host: Host) -> None:
    for run in range(2):
        node = host.node(run=RUN + run)
        node.text(**LINK)
        host.step()
        host.step(after_s=61)
        for number in range(2):
            node.delivery(number)
            host.step()
            host.step(after_s=61)
    (host.files()[0]).unlink()
    compact(host.out, LATER)
    rows = [row for row in host.rows() if row["kind"] == "link"]
    assert sorted((row["run"] - RUN, row["event"]) for row in rows) == [(0, "live"), (1, "opened")]


def test_an_hour_is_left_alone_until_five_minutes_after_its_end(logs: Path) -> None:
    report = compact(logs, LATER - timedelta(microseconds=1))
    assert (report.hours, report.files_before, len(all_files(logs))) == (0, 0, 6)


def test_a_merged_file_has_the_row_groups_of_any_other(logs: Path) -> None:
    compact(logs, LATER)
    merged = parquet.ParquetFile(live_files(logs)[0])
    kinds = [set(merged.read_row_group(i)["kind"].to_pylist()) for i in range(merged.num_row_groups)]
    assert kinds == [{"node", "link"}, {"delivery"}, {"traffic"}]


def test_a_merged_file_says_whose_it_is_and_what_it_replaces(logs: Path) -> None:
    names = [path.name for path in all_files(logs) if "node=r1" in str(path)]
    compact(logs, LATER)
    said = parquet.read_metadata(live_files(logs)[0]).metadata
    assert said[NODE_KEY.encode()] == b"r1"
    assert said[REPLACES_KEY.encode()].decode() == str(names).replace("'", '"')


def test_a_crash_before_the_old_ones_are_deleted_doubles_nothing(logs: Path) -> None:
    before = what_happened(logs)
    crashed(logs)
    assert len(all_files(logs)) == 7
    assert len(live_files(logs)) == 2
    assert what_happened(logs) == before
    compact(logs, LATER)
    assert len(all_files(logs)) == 2
    assert what_happened(logs) == before


def test_late_files_are_merged_with_what_was_merged_before(host: Host, logs: Path) -> None:
    compact(logs, LATER)
    for number in (200, 201):
        host.node(run=RUN + number).delivery(number)
        host.finish()
        report = compact(logs, LATER)
        assert report.hours == 1
        assert report.findings == ()
    assert len([path for path in all_files(logs) if "node=r1" in str(path)]) == 1
    assert host.numbers() == [0, 1, 2, 3, 4, 100, 200, 201]
    assert compact(logs, LATER).hours == 0


def test_who_reads_keeps_the_files_that_were_found(logs: Path) -> None:
    with reading(logs):
        found = live_files(logs)
        report = compact(logs, LATER)
        assert (report.put_off, report.findings) == (5, ())
        assert sum(len(rows_of(path)) for path in found) > 0
    compact(logs, LATER)
    assert len(all_files(logs)) == 2


def test_two_do_not_compact_at_once(logs: Path) -> None:
    def once_more(_: CompactionFailpoint) -> None:
        with pytest.raises(BlockingIOError, match="expected one at a time"):
            compact(logs, LATER)

    assert compact(logs, LATER, once_more).hours == 1


def test_the_writer_does_not_write_again_what_was_merged_meanwhile(host: Host, logs: Path) -> None:
    node = host.node("r3")
    node.delivery(300)
    host.step()
    host.step(after_s=61)
    node.delivery(301)
    host.step()
    with host.crashing_at(WriterFailpoint.FILE_NAMED):
        host.step(after_s=61)
    assert len(host.spools()) == 4
    compact(logs, LATER)
    host.finish()
    assert len([path for path in all_files(logs) if "node=r3" in str(path)]) == 1
    assert [number for number in host.numbers() if number >= 300] == [300, 301]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "expected a complete Parquet file"), (b"PAR1 nothing PAR1", "expected a complete Parquet file")],
)
def test_what_is_no_parquet_is_left_as_it_is(logs: Path, content: bytes, said: str) -> None:
    strange = live_files(logs)[0].with_name("0-foreign.parquet")
    strange.write_bytes(content)
    report = compact(logs, LATER)
    assert strange.read_bytes() == content
    assert [str(strange) in finding and said in finding for finding in report.findings] == [True]
    assert report.hours == 1


def test_files_of_another_schema_version_are_left_as_they_are(logs: Path) -> None:
    newer = live_files(logs)[0].with_name("9-newer.parquet")
    with open_writer(newer, metadata("r1", 9, "demo") | {VERSION_KEY: "2"}) as writer:
        writer.write_batch(batch_of_rows([{"kind": "node", "event": "live"}]))
    report = compact(logs, LATER)
    assert newer.exists()
    assert [("expected schema version 1 and its columns, got version 2" in finding) for finding in report.findings] == [
        True
    ]


def test_columns_that_a_file_does_not_have_are_null(logs: Path) -> None:
    first = live_files(logs)[0]
    read = parquet.ParquetFile(first).read()
    described = dict(read.schema.metadata)
    parquet.write_table(read.drop_columns(["cost", "cause", "event"]).replace_schema_metadata(described), first)
    assert compact(logs, LATER).findings == ()
    assert sum(what_happened(logs).values()) > 10


def test_a_file_with_a_damaged_page_leaves_its_hour_as_it_is(logs: Path) -> None:
    first = live_files(logs)[0]
    data = bytearray(first.read_bytes())
    data[4:200] = bytes(196)
    first.write_bytes(data)
    report = compact(logs, LATER)
    # What it wrote with would say so now if it were still at it.
    gc.collect()
    assert report.hours == 0
    assert ["the files of its hour were not changed" in finding for finding in report.findings] == [True]
    assert all_files(logs) == live_files(logs)
    assert not [path for path in logs.rglob("_*") if path.is_file()]


def test_names_that_lead_elsewhere_delete_nothing(tmp_path: Path, logs: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("do not lose")
    hour = live_files(logs)[0].parent
    described: dict[str, Any] = metadata("r1", 9, "demo") | {REPLACES_KEY: '["../../../precious", 5, ""]'}
    with open_writer(hour / "9-a.to.9-b.parquet", described) as writer:
        writer.write_batch(batch_of_rows([{"kind": "node", "event": "opened"}]))
    compact(logs, LATER)
    assert precious.exists()


def test_an_hour_that_is_merged_takes_less_room(logs: Path) -> None:
    report = compact(logs, LATER)
    assert report.bytes_after < report.bytes_before / 2


def test_no_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        compact(tmp_path / "nowhere", LATER)


def test_a_merge_while_files_are_listed_doubles_nothing(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(hour: Path) -> list[Path]:
        found = files_in(hour)
        monkeypatch.setattr(finding, "files_in", files_in)
        crashed(logs)
        return found

    before = what_happened(logs)
    monkeypatch.setattr(finding, "files_in", listed)
    assert what_happened(logs) == before
    assert len(all_files(logs)) == 7


def test_an_hour_that_is_too_old_by_now_stops_nothing(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(hour: Path, sources: object) -> None:
        shutil.rmtree(hour)
        merge(hour, sources)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "merge", gone)
    assert compact(logs, LATER).findings == ()
    assert [path for path in all_files(logs) if "node=r2" in str(path)]


def test_a_full_disk_leaves_all_as_it_was(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(path for path in logs.rglob("*") if path.is_file())
    with monkeypatch.context() as patched:
        patched.setattr(private_files, "create", lambda _: os.open("/dev/full", os.O_RDWR))
        with pytest.raises(OSError, match="No space left"):
            compact(logs, LATER)
    assert sorted(path for path in logs.rglob("*") if path.is_file() and path.name != ".compacting") == before
    assert compact(logs, LATER).hours == 1


def test_a_draft_of_a_run_that_died_is_gone_after_the_next(logs: Path) -> None:
    draft = live_files(logs)[0].with_name("_1-2.to.1-3.parquet.merging")
    draft.write_bytes(b"half a file")
    compact(logs, LATER)
    assert not draft.exists()


def test_a_file_that_is_deleted_meanwhile_stops_nothing(logs: Path) -> None:
    gone = live_files(logs)[0].with_name("1-2.parquet")
    gone.symlink_to("nowhere")
    report = compact(logs, LATER)
    assert report.hours == 1
    assert [str(gone) in finding for finding in report.findings] == [True]


def test_a_merge_of_a_merge_replaces_what_that_one_did(host: Host, logs: Path) -> None:
    crashed(logs)
    host.node(run=RUN + 1).delivery(200)
    host.finish()
    crashed(logs)
    first, second = sorted(path for path in all_files(logs) if ".to." in path.name)
    assert live_files(logs)[0] == second
    first.unlink()
    assert host.numbers() == [0, 1, 2, 3, 4, 100, 200]


def test_a_file_does_not_replace_itself(logs: Path) -> None:
    itself = live_files(logs)[0].with_name("9-a.to.9-b.parquet")
    with open_writer(itself, metadata("r1", 9, "demo") | {REPLACES_KEY: f'["{itself.name}"]'}) as writer:
        writer.write_batch(batch_of_rows([{"kind": "node", "event": "opened"}]))
    assert itself in live_files(logs)


def test_merged_files_begin_with_the_name_of_the_first(logs: Path) -> None:
    names = [path.name for path in all_files(logs) if "node=r1" in str(path)]
    compact(logs, LATER)
    stems = [name.removesuffix(".parquet") for name in names]
    assert live_files(logs)[0].name == f"{stems[0]}.to.{stems[-1]}.parquet"


def test_files_become_no_larger_than_readers_can_hold(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = what_happened(logs)
    of_r1 = [path for path in all_files(logs) if "node=r1" in str(path)]
    most_bytes = sum(path.stat().st_size for path in of_r1[:2])
    monkeypatch.setattr(compaction, "MOST_BYTES", most_bytes)
    compact(logs, LATER)
    left = [path for path in all_files(logs) if "node=r1" in str(path)]
    assert 1 < len(left) < len(of_r1)
    assert all(path.stat().st_size <= most_bytes for path in left)
    assert what_happened(logs) == before

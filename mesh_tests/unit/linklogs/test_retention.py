"""Old files go by age, then by size, the oldest hour first; never what is being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from linklogs.file_names import HOUR_US, directory_of
from linklogs.writer.events import FilesExpired
from linklogs.writer.retention import ExpiredFiles, expire
from mesh_tests.unit.linklogs.host import Host
from mesh_tests.unit.linklogs.rings import RUN

HOUR_S = 3600


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two nodes, three hours, 100 bytes each."""
    for node in ("r1", "r2"):
        for hour in range(3):
            directory = directory_of(tmp_path, node, RUN + hour * HOUR_US)
            directory.mkdir(parents=True)
            (directory / "1-0.parquet").write_bytes(bytes(100))
    return tmp_path


def left(out: Path) -> list[str]:
    return sorted(f"{path.parts[-3][5:]} {path.parts[-2][-2:]}" for path in out.glob("*/*/*.parquet"))


def test_nothing_goes_without_a_limit(out: Path) -> None:
    assert expire(out, RUN + 1000 * HOUR_US, None, None) == ExpiredFiles(0, 0)
    assert len(left(out)) == 6


def test_files_go_when_their_hour_ended_long_enough_ago(out: Path) -> None:
    now_us = RUN + 3 * HOUR_US
    assert expire(out, now_us - 1, 2 * HOUR_S, None) == ExpiredFiles(0, 0)
    assert expire(out, now_us, 2 * HOUR_S, None) == ExpiredFiles(2, 200)
    assert left(out) == ["r1 01", "r1 02", "r2 01", "r2 02"]
    assert not list(out.glob("*/hour=2026-11-24T00"))


def test_what_is_beyond_the_size_goes_the_oldest_hour_first(out: Path) -> None:
    assert expire(out, RUN, None, 350) == ExpiredFiles(3, 300)
    assert left(out) == ["r1 02", "r2 01", "r2 02"]


def test_a_node_without_files_has_no_directory(out: Path) -> None:
    expire(out, RUN, None, 0)
    assert list(out.iterdir()) == []


def test_what_is_being_written_or_is_of_somebody_else_stays(out: Path) -> None:
    hour = directory_of(out, "r1", RUN)
    strange = [hour / "_1-5.parquet.merging", hour / ".hidden.parquet", hour / "notes.txt", out / "node=r1/hour=x"]
    for path in strange:
        path.write_text("mine")
    expire(out, RUN, None, 0)
    assert all(path.exists() for path in strange)


def test_the_writer_expires_files_while_it_runs_and_no_spool(host: Host) -> None:
    host.options = {"keep_s": 2 * HOUR_S}
    node = host.node()
    node.delivery(1)
    host.step()
    host.step(after_s=61)
    assert len(host.files()) == 1
    for _ in range(3):
        host.step(after_s=HOUR_S)
    assert host.files() == []
    assert [event.files for event in host.events(FilesExpired)] == [1]
    assert len(host.spools()) == 1
    node.delivery(2)
    host.finish()

"""The file that a node records to: who makes it, who may take it away, and what becomes of it without a writer."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import pytest

from recording import ring_file
from recording import ring_format as ring
from recording.records import Recorder
from recording.ring_file import KEPT, RingFile

SIZE = 1 << 20


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_ring_has_its_header_and_its_room_before_anybody_sees_it(tmp_path: Path):
    made = RingFile(tmp_path / "rings", "r1", 17, SIZE, {"node": "r1"})
    (path,) = (tmp_path / "rings").iterdir()
    assert path.name == "r1.17.ring"
    assert path.stat().st_blocks * 512 >= SIZE
    assert path.read_bytes()[: len(ring.MAGIC)] == ring.MAGIC
    made.close()


def test_it_is_locked_as_long_as_its_node_lives(tmp_path: Path):
    made = RingFile(tmp_path, "r1", 17, SIZE, {})
    handle = os.open(tmp_path / "r1.17.ring", os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    made.close()
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_a_disk_without_room_for_it_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_room(handle: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ring_file.os, "posix_fallocate", no_room)
    with pytest.raises(OSError, match="No space left"):
        RingFile(tmp_path, "r1", 17, SIZE, {})
    assert names(tmp_path) == []


def test_of_earlier_runs_the_last_few_wait_for_the_writer_and_no_more(tmp_path: Path):
    for run in range(8, 8 + KEPT + 3):
        RingFile(tmp_path, "r1", run, SIZE, {}).close()
    newest = 8 + KEPT + 2
    assert names(tmp_path) == sorted(f"r1.{run}.ring" for run in range(newest - KEPT, newest + 1))


def test_what_nobody_had_taken_of_rings_that_make_way_is_counted_as_dropped(tmp_path: Path):
    for run, (written, taken, dropped) in enumerate([(10, 4, 3), (7, 0, 2), *[(0, 0, 0)] * (KEPT - 1)]):
        made = RingFile(tmp_path, "r1", run, SIZE, {})
        counts = {ring.WRITTEN_AT: written, ring.TAKEN_AT: taken, ring.DROPPED_AT: dropped}
        for at, count in counts.items():
            struct.pack_into("<Q", made.memory, at, count)
        made.close()
    # The oldest makes way: three of its records that had no room were told.
    sixth = RingFile(tmp_path, "r1", 90, SIZE, {})
    assert Recorder(sixth.memory, "full").dropped == 6
    sixth.close()
    seventh = RingFile(tmp_path, "r1", 91, SIZE, {})
    assert struct.unpack_from("<Q", seventh.memory, ring.DROPPED_AT) == (9,)
    seventh.close()


def test_a_ring_from_which_nobody_takes_records_goes_with_the_next_run(tmp_path: Path):
    made = RingFile(tmp_path, "r1", 17, SIZE, {}, overwrites=True)
    struct.pack_into("<Q", made.memory, ring.WRITTEN_AT, 9)
    made.close()
    assert names(tmp_path) == ["r1.17.ring"]
    second = RingFile(tmp_path, "r1", 18, SIZE, {}, overwrites=True)
    assert names(tmp_path) == ["r1.18.ring"]
    assert Recorder(second.memory, "full").dropped == 0
    # One in use stays.
    third = RingFile(tmp_path, "r1", 19, SIZE, {})
    assert names(tmp_path) == ["r1.18.ring", "r1.19.ring"]
    second.close()
    third.close()


def test_rings_of_others_and_those_in_use_stay(tmp_path: Path):
    other = RingFile(tmp_path, "r1.2", 1, SIZE, {})
    used = RingFile(tmp_path, "r1", 1, SIZE, {})
    other.close()
    for run in range(2, 3 + KEPT + 1):
        RingFile(tmp_path, "r1", run, SIZE, {}).close()
    assert {"r1.2.1.ring", "r1.1.ring"} <= set(names(tmp_path))
    assert "r1.2.ring" not in names(tmp_path)
    used.close()

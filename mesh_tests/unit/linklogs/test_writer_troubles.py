"""What can be wrong with rings and disks: each a sentence, and all other records go on."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

import pytest

from linklogs import private_files
from linklogs.writer import spool
from linklogs.writer.events import LookingFailed, RingPutAside, SpoolPutAside, WritingFailed, WritingRecovered
from linklogs.writer.failpoints import WriterFailpoint
from mesh_tests.unit.linklogs.host import Host
from mesh_tests.unit.linklogs.rings import CLOCK, RUN, START, RingWriter
from recording import ring_format as ring
from recording.columns import RecordEvent, RecordKind
from recording.records import Recorder
from recording.state_records import StateRecorder


def assert_put_aside(host: Host, node: RingWriter, said: str) -> None:
    """And a ring beside it goes on."""
    other = host.node("other")
    other.delivery(77)
    host.step()
    assert [event.reason.startswith(str(node.path)) for event in host.events(RingPutAside)] == [True]
    assert said in host.events(RingPutAside)[0].reason
    assert not node.path.exists()
    assert node.path.with_name(node.path.name + ".damaged").exists()
    host.step(after_s=2)
    host.finish()
    assert len(host.events(RingPutAside)) == 1
    assert 77 in host.numbers()


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (ring.CAPACITY_AT, 0, "expected a capacity from 1 to below 2^40 slots"),
        (ring.CAPACITY_AT, 1 << 50, "expected a capacity from 1 to below 2^40 slots"),
        (ring.CAPACITY_AT, 5000, "expected 164096 for 5000 slots"),
        (ring.RUN_AT, 0, "expected a capacity from 1 to below 2^40 slots"),
        (ring.WRITTEN_AT, 2000, "2000 slots written and 0 taken"),
        (ring.TAKEN_AT, 4, "1 slots written and 4 taken"),
    ],
)
def test_a_ring_with_numbers_that_cannot_be_is_put_aside(host: Host, at: int, value: int, said: str) -> None:
    node = host.node()
    node.delivery(1)
    node.put(at, value)
    assert_put_aside(host, node, said)


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"nonsense", "begins with b'nonsense', expected b'AMQring1'"), (bytes(7), "expected b'AMQring1'")],
)
def test_a_ring_that_is_none_is_put_aside(host: Host, data: bytes, said: str) -> None:
    node = host.node()
    node.map[: len(data)] = data
    assert_put_aside(host, node, said)


@pytest.mark.parametrize("header", [b"", b"{}", b"[1]", b'{"node": ""}', b'{"node": "\\ud800"}', b"\xff"])
def test_a_ring_of_nobody_is_put_aside(host: Host, header: bytes) -> None:
    node = host.node()
    node.map[ring.NODE_AT : ring.HEADER_BYTES] = header.ljust(ring.HEADER_BYTES - ring.NODE_AT, b"\0")
    assert_put_aside(host, node, "expected a header with a JSON object that names a node")


def test_a_ring_whose_node_steps_back_is_put_aside_and_what_was_taken_becomes_a_file(host: Host) -> None:
    node = host.node()
    for number in range(3):
        node.delivery(number)
    host.step()
    node.put(ring.WRITTEN_AT, 2)
    assert_put_aside(host, node, "3 written before")
    assert host.numbers() == [0, 1, 2, 77]


def test_a_ring_that_is_cut_off_is_put_aside(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    os.truncate(node.path, ring.HEADER_BYTES)
    assert_put_aside(host, node, "expected 36864 for 1024 slots")
    assert host.numbers() == [1, 77]


def test_text_longer_than_its_ring_is_damage(host: Host) -> None:
    node = host.node(capacity=8)
    node.slots(struct.pack(ring.SLOT, START, 0, 9999, 0, 0, 0, ring.TEXT, 0, 0))
    assert_put_aside(host, node, "a text takes 314 slots, expected at most 8")


def test_a_second_ring_of_a_run_is_put_aside(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    copy = node.path.with_name("z-copy.ring")
    copy.write_bytes(node.path.read_bytes())
    host.finish()
    assert "expected a single ring of run" in host.events(RingPutAside)[0].reason
    assert host.numbers() == [1]
    assert node.path.exists()


def test_a_damaged_ring_that_cannot_be_renamed_stops_nothing_and_is_renamed_later(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = host.node()
    node.delivery(1)
    node.put(ring.CAPACITY_AT, 0)
    other = host.node("other")
    other.delivery(77)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse_to_rename)
        host.step()
        host.step(after_s=2)
    assert host.events(RingPutAside) == []
    host.step(after_s=2)
    assert len(host.events(RingPutAside)) == 1
    assert not node.path.exists()
    host.finish()
    assert 77 in host.numbers()


def refuse_to_rename(path: Path, _target: Path) -> Path:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_a_ring_that_a_node_makes_now_is_waited_for(host: Host) -> None:
    path = host.rings / "r9.ring"
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(path, (0, 0))
        host.step()
        host.step(after_s=2)
    assert path.exists()
    host.step(after_s=2)
    assert not path.exists()
    assert len(host.events(RingPutAside)) == 1


def test_a_ring_whose_records_nobody_is_to_keep_is_left_alone(host: Host) -> None:
    kept, other = host.node("r1"), host.node("r2")
    other.put(ring.OVERWRITES_AT, 1)
    for node in (kept, other):
        node.delivery(1)
    # More than a ring has room for: a ring from which records are taken would count as damaged.
    other.put(ring.WRITTEN_AT, 5 * other.capacity)
    host.step()
    other.close()
    host.step(after_s=120.0)
    assert other.path.exists()
    assert kept.taken == 1
    assert host.events(RingPutAside) == []


def test_a_ring_that_never_was_made_is_put_aside(host: Host) -> None:
    path = host.rings / "r9.ring"
    path.write_bytes(bytes(ring.HEADER_BYTES))
    host.step()
    assert path.exists()
    os.utime(path, (0, 0))
    host.step(after_s=2)
    assert not path.exists()


class FailingDisk:
    """Lets no file be written while ``is_full``; spools that are there may grow by ``left_bytes``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.left_bytes = 0
        self.refused = 0
        self._pwrite, self._create = os.pwrite, private_files.create
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(private_files, "create", self.create)

    def pwrite(self, handle: int, data: memoryview, at: int) -> int:
        if not self.is_full:
            return self._pwrite(handle, data, at)
        if not self.left_bytes:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = self._pwrite(handle, data[: self.left_bytes], at)
        self.left_bytes -= done
        return done

    def create(self, path: Path) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return self._create(path)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    return FailingDisk(monkeypatch)


@pytest.mark.parametrize("left_bytes", [0, 1, 64, 65, 100])
def test_what_finds_no_room_on_the_disk_stays_in_the_ring(host: Host, disk: FailingDisk, left_bytes: int) -> None:
    node = host.node(capacity=4)
    node.delivery(0)
    host.step()
    (left,) = host.spools()
    size = left.stat().st_size
    disk.is_full, disk.left_bytes = True, left_bytes
    for number in range(1, 7):
        node.delivery(number)
    for _ in range(5):
        host.step(after_s=2)
    assert (node.taken, node.dropped) == (1, 2)
    assert left.stat().st_size == size
    assert [event.error for event in host.events(WritingFailed)] == ["[Errno 28] No space left on device"]
    disk.is_full = False
    host.step(after_s=2)
    assert [event.node for event in host.events(WritingRecovered)] == ["r1"]
    host.finish()
    assert host.numbers() == [0, 1, 2, 3, 4]
    assert [row["count"] for row in host.rows() if row.get("event") == "lost"] == [2]


def test_a_disk_that_fails_is_tried_again_after_a_second_and_not_at_every_look(host: Host, disk: FailingDisk) -> None:
    node = host.node()
    host.step()
    node.delivery(1)
    disk.is_full = True
    for _ in range(10):
        host.step(after_s=0.1)
    assert disk.refused == 1
    host.step(after_s=0.1)
    assert disk.refused == 2


def test_a_spool_that_cannot_be_read_now_is_not_left_over(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> spool.Content:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    node = host.node()
    node.delivery(1)
    with host.crashing_at(WriterFailpoint.SPOOLED):
        host.step()
    with monkeypatch.context() as patched:
        patched.setattr(spool, "read", fail)
        host.step()
    node.delivery(2)
    host.step(after_s=2)
    host.finish()
    assert node.path.exists()
    assert host.numbers() == [1, 2]


def test_a_spool_that_finds_no_room_as_a_file_waits_and_records_go_on(host: Host, disk: FailingDisk) -> None:
    node = host.node()
    host.step()
    disk.is_full, disk.left_bytes = True, 1 << 20
    for number in range(5):
        node.delivery(number)
        host.step(after_s=61)
    assert host.files() == []
    assert node.taken == 5
    assert len(host.events(WritingFailed)) == 1
    disk.is_full = False
    host.step(after_s=2)
    assert host.numbers() == list(range(5))


def test_no_room_for_a_first_spool_is_said_and_tried_again(host: Host, disk: FailingDisk) -> None:
    host.step()
    disk.is_full = True
    node = host.node()
    node.delivery(1)
    for _ in range(3):
        host.step(after_s=2)
    assert len(host.events(LookingFailed)) == 1
    disk.is_full = False
    host.step(after_s=2)
    assert node.taken == 1


def test_half_a_file_is_never_left(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    node = host.node()
    node.delivery(1)
    host.step()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        host.step(after_s=61)
        assert host.files() == []
    assert not list(host.out.rglob("*.draft"))
    host.step(after_s=2)
    host.finish()
    assert host.numbers() == [1]


def test_a_spool_of_another_format_is_put_aside(host: Host) -> None:
    host.node().delivery(1)
    host.step()
    host.stop()
    (left,) = host.spools()
    left.write_bytes(left.read_bytes().replace(b"AMQspol1", b"AMQspol2"))
    host.step()
    assert len(host.events(SpoolPutAside)) == 1


def test_a_spool_that_can_be_no_file_is_put_aside(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    host.stop()
    node.close()
    node.path.unlink()
    (left,) = host.spools()
    left.write_bytes(b"something else")
    host.step()
    assert [event.reason for event in host.events(SpoolPutAside)] == [
        f"{left}: the spool of 14 bytes has an incomplete or damaged header, expected b'AMQspol1' and its crc32"
    ]
    assert host.spools() == []


def test_a_spool_that_somebody_deleted_stops_nothing(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    host.spools()[0].unlink()
    host.step(after_s=61)
    node.delivery(2)
    host.finish()
    assert host.numbers() == [2]


def test_what_a_torn_write_left_behind_is_no_chunk(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    (path,) = host.spools()
    whole = path.read_bytes()
    head = spool.read(path).head
    size = spool.read(path).end_bytes
    chunk = whole[-96:]
    path.write_bytes(whole + chunk)
    content = spool.read(path)
    assert (content.end_bytes, len(content.chunks), content.head) == (size, 1, head)
    assert head.owner.run == RUN


def test_what_a_full_disk_kept_a_node_from_telling_is_in_the_files_of_when_there_is_room(
    host: Host, disk: FailingDisk
) -> None:
    node = host.node(capacity=64)
    recorder = Recorder(node.map, "full")
    teller = StateRecorder(recorder)

    def pass_second() -> None:
        host.step(after_s=1)
        recorder.set_now((host.utc_us - CLOCK) / 1e6)
        teller.end_second()

    pass_second()
    for link in (1, 2, 3):
        teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=link, address="a")
    pass_second()
    disk.is_full = True
    for link in range(4, 41):
        teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=link, address="a")
    for link in (2, 40):
        teller.tell(RecordKind.LINK, RecordEvent.CLOSED, link=link)
    for _ in range(5):
        pass_second()
    assert node.dropped > 0
    disk.is_full = False
    for _ in range(30):
        pass_second()
    host.finish()
    rows = [row for row in host.rows() if row["kind"] in ("link", "node")]
    there = {row["link"] for row in rows if row["event"] in ("opened", "live") and row["kind"] == "link"}
    gone = {row["link"] for row in rows if row["event"] == "closed"}
    assert there - gone == {1, *range(3, 40)}
    assert 2 in gone
    (lost,) = [row for row in rows if row["event"] == "lost"]
    late = [row["at_us"] for row in rows if row["event"] == "live" and row["kind"] == "link" and row["link"] > 30]
    assert late
    assert lost["at_us"] <= min(late)

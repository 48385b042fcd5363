"""A second reader of a ring: does it read all that the node wrote, count what it missed, and leave no trace?"""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.watch.ring_follower import AT_ONCE_SLOTS, RingFollower, RingUnreadable
from mesh.watch.slots import read_slots
from mesh_tests.handmade_ring import CAPACITY, HandmadeRing, slot, text
from recording import ring_format as layout
from recording.records import Recorder
from recording.ring_file import RingFile, header
from recording.ring_format import DELIVERY, SLOT_BYTES

SIZE = layout.HEADER_BYTES + CAPACITY * SLOT_BYTES
ABOUT = {"node": "r1", "mesh": "m", "role": "router", "version": "1", "topology": "abc"}


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[HandmadeRing]:
    made = HandmadeRing(tmp_path, "r1", 17)
    yield made
    made.close()


@pytest.fixture
def follower(ring: HandmadeRing) -> Iterator[RingFollower]:
    found = RingFollower(ring.path)
    yield found
    found.close()


def numbers(data: bytes) -> list[int]:
    """``incoming`` of each slot, by which the tests number slots."""
    return [struct.unpack_from(layout.SLOT, data, at)[3] for at in range(0, len(data), SLOT_BYTES)]


def numbered(begin: int, count: int) -> list[bytes]:
    return [slot(DELIVERY, incoming=number) for number in range(begin, begin + count)]


def test_it_knows_whose_ring_it_is(ring: HandmadeRing, follower: RingFollower):
    node = follower.node
    assert (node.name, node.run_us, node.mesh, node.role, node.version) == ("r1", 17, "m", "router", "1")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1500), st.booleans()), max_size=20))
def test_all_rows_of_a_recorder_arrive_in_order_however_often_the_ring_comes_round(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, bool]]
):
    folder = tmp_path_factory.mktemp("rings")
    file = RingFile(folder, "r1", 17, SIZE, ABOUT)
    recorder = Recorder(file.memory, "full")
    recorder.set_clock(1000, 5)
    follower = RingFollower(folder / "r1.17.ring")
    told, found, rest = 0, [], b""

    def read() -> None:
        nonlocal rest
        slots = follower.read()
        assert (slots.missed, slots.clock_us, slots.is_last) == (0, 1000, True)
        records = read_slots(rest + slots.data, slots.clock_us)
        rest = records.rest
        found.extend(row["link"] for _, row in records.rows)

    for count, reads in batches:
        for _ in range(count):
            # The writer takes all slots at once.
            struct.pack_into("<Q", file.memory, layout.TAKEN_AT, recorder.written)
            assert recorder.tell({"kind": "link", "link": told})
            told += 1
            if recorder.written - follower.position > CAPACITY // 4:
                read()
        if reads:
            read()
    read()
    assert found == list(range(told))
    assert rest == b""
    follower.close()
    recorder.close()
    file.close()


def test_a_reader_a_whole_ring_behind_counts_what_it_missed_and_begins_at_a_record(
    ring: HandmadeRing, follower: RingFollower
):
    ring.put(*numbered(0, 10))
    assert numbers(follower.read().data) == list(range(10))
    ring.put(*numbered(10, CAPACITY + 5))
    late = follower.read()
    assert (late.data, late.missed, late.is_last) == (b"", CAPACITY + 5, True)
    ring.put(text({"kind": "link"}))
    assert [row for _, row in read_slots(follower.read().data, 0).rows] == [{"kind": "link"}]


def test_it_never_takes_slots_for_old_ones_that_the_node_may_be_writing_over(
    ring: HandmadeRing, follower: RingFollower
):
    """The slots of a record are written before they are counted."""
    ring.put(*numbered(0, CAPACITY // 2))
    assert follower.read().missed == 0
    ring.put(*numbered(0, CAPACITY // 2 + 1))
    assert follower.read().missed == CAPACITY // 2 + 1


def test_where_the_node_overwrites_records_it_may_be_an_eighth_of_the_ring_ahead(tmp_path: Path):
    capacity = 1 << 16
    ring = HandmadeRing(tmp_path, "r1", 1, capacity=capacity)
    ring.store(layout.OVERWRITES_AT, 1)
    follower = RingFollower(ring.path)
    for count, missed in ((capacity // 8 * 7, 0), (capacity // 8 * 7 + 1, capacity // 8 * 7 + 1)):
        ring.put(*numbered(0, count))
        assert follower.read().missed == missed
    follower.close()
    ring.close()


def test_a_node_that_comes_round_while_slots_are_copied_leaves_none_of_them(
    ring: HandmadeRing, follower: RingFollower, monkeypatch: pytest.MonkeyPatch
):
    copy = follower._copy

    def copied_slowly(begin: int, count: int) -> bytes:
        first = copy(begin, count // 2)
        ring.put(*numbered(100, CAPACITY))
        return first + copy(begin + count // 2, count - count // 2)

    ring.put(*numbered(0, 100))
    monkeypatch.setattr(follower, "_copy", copied_slowly)
    found = follower.read()
    assert (found.data, found.missed) == (b"", CAPACITY + 100)
    monkeypatch.undo()
    ring.put(*numbered(9000, 3))
    assert numbers(follower.read().data) == [9000, 9001, 9002]


def test_much_is_read_in_parts(tmp_path: Path):
    ring = HandmadeRing(tmp_path, "r1", 1, capacity=2 * AT_ONCE_SLOTS)
    follower = RingFollower(ring.path)
    ring.put(*numbered(0, AT_ONCE_SLOTS + 3))
    first, second = follower.read(), follower.read()
    assert (first.is_last, second.is_last) == (False, True)
    assert numbers(first.data + second.data) == list(range(AT_ONCE_SLOTS + 3))
    follower.close()
    ring.close()


def test_reading_changes_nothing_in_the_file(ring: HandmadeRing, follower: RingFollower):
    for _ in range(3):
        ring.put(*numbered(0, CAPACITY // 2 - 1))
        before = ring.path.read_bytes()
        follower.read()
        follower.is_abandoned()
        follower.beat_us()
        assert ring.path.read_bytes() == before
    assert struct.unpack_from("<Q", ring.file.memory, layout.TAKEN_AT) == (0,)


def test_a_ring_is_abandoned_once_its_node_is_gone_and_looking_leaves_no_lock(
    ring: HandmadeRing, follower: RingFollower
):
    assert not follower.is_abandoned()
    ring.end()
    assert follower.is_abandoned()
    handle = os.open(ring.path, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not follower.is_abandoned()
    os.close(handle)


def test_the_clock_may_be_behind_the_monotonic_clock(ring: HandmadeRing, follower: RingFollower):
    ring.store(layout.CLOCK_AT, (1 << 64) - 5)
    ring.store(layout.BEAT_AT, 77)
    ring.store(layout.DROPPED_AT, 3)
    found = follower.read()
    assert (found.clock_us, found.dropped, follower.beat_us()) == (-5, 3, 77)


def with_word(at: int, value: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:at] + struct.pack("<Q", value) + whole[at + 8 :]


def about(said: bytes) -> Callable[[bytes], bytes]:
    return lambda whole: whole[: layout.NODE_AT] + said.ljust(layout.HEADER_BYTES - layout.NODE_AT, b"\0")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "half a header": lambda whole: whole[: layout.HEADER_BYTES // 2],
    "other magic": lambda whole: b"PAR1" + whole[4:],
    "short": lambda whole: whole[:-1],
    "no slots": with_word(layout.CAPACITY_AT, 0),
    "more slots than bytes": with_word(layout.CAPACITY_AT, CAPACITY + 1),
    "slots beyond all numbers": with_word(layout.CAPACITY_AT, (1 << 64) - 1),
    "no JSON": about(b"{"),
    "no UTF-8": about(b"\xff"),
    "a list": about(b"[1]"),
    "no name": about(b"{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name_and_its_handle_closed(tmp_path: Path, damage: str):
    path = tmp_path / "r1.17.ring"
    path.write_bytes(DAMAGES[damage](header(SIZE, 17, ABOUT) + bytes(CAPACITY * SLOT_BYTES)))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RingUnreadable, match=r"r1\.17\.ring: .*expected"):
        RingFollower(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_whole_file_is_not_refused(tmp_path: Path):
    path = tmp_path / "r1.17.ring"
    path.write_bytes(header(SIZE, 17, json.loads(json.dumps(ABOUT))) + bytes(CAPACITY * SLOT_BYTES))
    RingFollower(path).close()

"""A writer that dies, wherever it is, loses no record and doubles none."""

from __future__ import annotations

import random
import struct

import pytest

from linklogs.writer import spool
from linklogs.writer.events import RecordsRefused, RingEnded, SpoolPutAside
from linklogs.writer.failpoints import WriterFailpoint
from linklogs.writer.writer import SPOOLS, Writer, WriterInUse
from mesh_tests.unit.linklogs.host import Crash, Host, rows_of
from mesh_tests.unit.linklogs.rings import RUN, START
from recording import ring_format as ring

LINK = {"kind": "link", "event": "opened", "link": 7}


@pytest.mark.parametrize("failpoint", WriterFailpoint)
def test_a_crash_between_two_steps_loses_and_doubles_nothing(host: Host, failpoint: WriterFailpoint) -> None:
    host.options = {"spool_bytes": 10 * ring.SLOT_BYTES}
    node = host.node()
    for number in range(25):
        node.delivery(number)
    with host.crashing_at(failpoint):
        host.step()
    for number in range(25, 40):
        node.delivery(number)
    host.finish()
    assert host.numbers() == list(range(40))


@pytest.mark.parametrize("failpoint", sorted(set(WriterFailpoint) - {WriterFailpoint.SPOOL_BEGUN}))
def test_a_crash_while_a_ring_ends_loses_and_doubles_nothing(host: Host, failpoint: WriterFailpoint) -> None:
    node = host.node()
    node.delivery(1)
    node.close()
    with host.crashing_at(failpoint):
        host.step()
    host.step()
    assert host.numbers() == [1]
    assert list(host.rings.iterdir()) == host.spools() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_life_of_crashes_loses_and_doubles_nothing(host: Host, seed: int) -> None:
    chance = random.Random(seed)
    host.options = {"spool_bytes": 12 * ring.SLOT_BYTES}
    node = host.node(capacity=24)
    done: list[int] = []
    links = 0
    for number in range(600):
        if node.delivery(number):
            done.append(number)
        if chance.random() < 0.1:
            links += node.text(**LINK, name="n" * chance.randint(1, 200))
        if chance.random() < 0.2:
            host.crash_at = chance.choice([None, *WriterFailpoint])
            try:
                host.step(after_s=chance.choice([0, 1, 61]))
            except Crash:
                host.stop()
    host.crash_at = None
    lost = node.dropped
    node.close()
    host.step()
    host.step(after_s=2)
    assert host.numbers() == done
    assert sum(row["kind"] == "link" and row["event"] == "opened" for row in host.rows()) == links
    assert sum(row["count"] for row in host.rows() if row.get("event") == "lost") == lost > 0
    assert list(host.rings.iterdir()) == host.spools() == []


@pytest.mark.parametrize("cut_bytes", [1, 31, 32, 63, 64, 65, 95])
def test_a_torn_chunk_is_cut_off_and_taken_again(host: Host, cut_bytes: int) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    node.delivery(2)
    with host.crashing_at(WriterFailpoint.SPOOLED):
        host.step()
    (left,) = host.spools()
    left.write_bytes(left.read_bytes()[:-cut_bytes])
    assert node.taken == 1
    node.delivery(3)
    host.finish()
    assert host.numbers() == [1, 2, 3]


def test_a_chunk_with_a_wrong_byte_is_cut_off_and_taken_again(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    node.delivery(2)
    with host.crashing_at(WriterFailpoint.SPOOLED):
        host.step()
    (left,) = host.spools()
    data = bytearray(left.read_bytes())
    data[-20] ^= 1
    left.write_bytes(data)
    host.finish()
    assert host.numbers() == [1, 2]


def test_what_is_behind_the_last_whole_chunk_is_gone_when_the_next_writer_starts(host: Host) -> None:
    host.node().delivery(1)
    host.step()
    host.stop()
    (left,) = host.spools()
    whole = left.read_bytes()
    left.write_bytes(whole + bytes(500))
    host.step()
    assert left.read_bytes() == whole


def test_what_a_power_cut_took_from_a_spool_is_said_as_lost(host: Host) -> None:
    node = host.node()
    for number in range(3):
        node.delivery(number)
        host.step()
    host.stop()
    (left,) = host.spools()
    left.write_bytes(left.read_bytes()[:-1])
    host.finish()
    assert host.numbers() == [0, 1]
    assert [row["count"] for row in host.rows() if row.get("event") == "lost"] == [1]


def test_a_spool_without_a_head_is_put_aside_and_its_numbers_are_not_given_again(host: Host) -> None:
    host.options = {"spool_bytes": 2 * ring.SLOT_BYTES}
    node = host.node(capacity=4)
    for number in range(4):
        node.delivery(number)
    host.step()
    host.options = {}
    host.stop()
    for number in range(6):
        node.delivery(10 + number)
    host.step()
    host.stop()
    (left,) = host.spools()
    left.write_bytes(b"AMQ" + left.read_bytes()[4:])
    node.delivery(20)
    host.finish()
    assert [str(event.reason).partition(":")[0] for event in host.events(SpoolPutAside)] == [str(left)]
    assert host.numbers() == [0, 1, 2, 3, 20]
    assert host.files()[-1].name > f"{RUN}-000000000009"


def test_drafts_of_a_writer_that_died_are_gone_when_the_next_starts(host: Host) -> None:
    host.node().delivery(1)
    host.step()
    host.stop()
    draft = (host.out / SPOOLS / "r1.draft").resolve()
    draft.write_bytes(b"half a file")
    host.finish()
    assert not draft.exists()
    assert host.numbers() == [1]


def test_spools_of_a_ring_that_is_no_more_become_files(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    host.stop()
    node.path.unlink()
    host.step()
    assert host.numbers() == [1]
    assert host.spools() == []


def test_spools_of_a_ring_that_nobody_can_see_now_are_left_alone(host: Host) -> None:
    host.node().delivery(1)
    host.step()
    host.stop()
    away = host.rings.rename(host.rings.with_name("away"))
    host.step()
    assert host.files() == []
    away.rename(host.rings)
    host.step(after_s=2)
    host.finish()
    assert host.numbers() == [1]


def test_a_file_that_is_there_is_not_written_again(host: Host) -> None:
    host.node().delivery(1)
    with host.crashing_at(WriterFailpoint.FILE_NAMED):
        host.finish()
    (file,) = host.files()
    before = file.stat().st_ino
    host.finish()
    assert [path.stat().st_ino for path in host.files()] == [before]


def test_a_ring_is_deleted_when_its_node_is_gone_and_all_is_in_files(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    host.step(after_s=2)
    assert node.path.exists()
    node.delivery(2)
    node.close()
    host.step()
    host.step(after_s=2)
    assert list(host.rings.iterdir()) == host.spools() == []
    assert host.numbers() == [1, 2]
    assert [event.node for event in host.events(RingEnded)] == ["r1"]


def test_a_node_that_starts_again_has_a_ring_and_files_of_its_own(host: Host) -> None:
    first = host.node()
    first.delivery(1)
    host.step()
    first.close()
    host.node(run=RUN + 5_000_000).delivery(2)
    host.step(after_s=2)
    host.finish()
    assert [(row["run"] - RUN, row["size_bytes"]) for row in host.rows() if row["kind"] == "delivery"] == [
        (0, 1),
        (5_000_000, 2),
    ]
    assert len(list(host.rings.iterdir())) == 1


def test_two_writers_do_not_write_to_one_directory(host: Host) -> None:
    host.node()
    host.step()
    with pytest.raises(WriterInUse, match="expected a single writer"):
        Writer(host.settings())


def test_what_was_spooled_before_a_crash_is_given_back_to_the_node_afterwards(host: Host) -> None:
    node = host.node(capacity=2)
    node.delivery(1)
    with host.crashing_at(WriterFailpoint.SPOOLED):
        host.step()
    assert node.taken == 0
    host.step()
    assert node.taken == 1


def test_text_that_a_node_did_not_live_to_write_does_not_keep_its_ring(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    node.slots(struct.pack(ring.SLOT, START, 0, 100, 0, 0, 0, ring.TEXT, 0, 0))
    node.close()
    host.step()
    assert list(host.rings.iterdir()) == host.spools() == []
    assert host.numbers() == [1]
    assert [event.records for event in host.events(RecordsRefused)] == [1]


def test_a_spool_reads_back_as_it_was_written(host: Host) -> None:
    node = host.node("a.b/7")
    node.text(**LINK)
    host.step()
    host.step(after_s=61)
    node.delivery(3)
    host.step()
    (path,) = host.spools()
    content = spool.read(path)
    assert (content.head.owner.node, content.head.ring, content.head.first) == ("a.b/7", 3, 3)
    assert [chunk.slots["size_bytes"].tolist() for chunk in content.chunks] == [[3]]
    assert (spool.first_of(path), spool.run_of(path)) == (3, f"a.b%2F7.{RUN}")
    assert {row["kind"] for row in content.head.live} == {"node", "link"}
    assert len(rows_of(host.files()[0])) == 2

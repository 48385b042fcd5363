"""Records of nodes become rows of files: each once, with its time and its kind, beside what was live."""

from __future__ import annotations

import stat
import struct
from itertools import pairwise
from pathlib import Path

import pyarrow
import pytest
from pyarrow import dataset, parquet

from mesh_tests.unit.linklogs.host import Host, end_of_hour_us, rows_of
from mesh_tests.unit.linklogs.rings import CLOCK, RUN, START
from recording import ring_format as ring
from recording.columns import DROPPED_KEY, MESH_KEY, NODE_KEY, RUN_KEY

LINK = {"kind": "link", "event": "opened", "link": 7, "connection": 3, "address": "orders", "role": "producer"}


def numbers_of(path: Path) -> list[int]:
    return [row["size_bytes"] for row in rows_of(path) if row["kind"] == "delivery"]


def test_a_delivery_becomes_a_row_at_the_time_of_its_settlement(host: Host) -> None:
    node = host.node()
    node.delivery(100, START + 10, took_us=5, incoming=3, outgoing=4, outcome=0x25, part=2)
    host.finish()
    row = next(row for row in host.rows() if row["kind"] == "delivery")
    assert row == {
        "kind": "delivery", "at_us": RUN + 15, "run": RUN, "incoming": 3, "outgoing": 4, "outcome": "rejected",
        "part": "copy", "count": 1, "size_bytes": 100, "took_us": 5,
    }  # fmt: skip


def test_traffic_and_messages_become_rows_of_their_columns(host: Host) -> None:
    node = host.node()
    node.delivery(900, START + 10, took_us=5, kind=ring.TRAFFIC, count=9)
    node.delivery(100, START + 10, took_us=5, incoming=6, kind=4)
    host.finish()
    traffic, message = (row for row in host.rows() if row["kind"] in ("traffic", "message"))
    assert (traffic["at_us"], traffic["count"], traffic["took_us"]) == (RUN + 10, 9, 5)
    assert message == {
        "kind": "message", "event": "dequeued", "at_us": RUN + 15, "run": RUN, "count": 1, "queue": 6,
        "size_bytes": 100, "took_us": 5,
    }  # fmt: skip


def test_a_code_without_a_word_is_null(host: Host) -> None:
    host.node().delivery(outcome=99)
    host.finish()
    row = next(row for row in host.rows() if row["kind"] == "delivery")
    assert "outcome" not in row
    assert row["part"] == "whole"


def test_text_becomes_a_row_of_the_columns_that_fit(host: Host) -> None:
    host.node().text(START + 3, **LINK, credit="much", nonsense=1, user="\ud800", cost=True)
    host.finish()
    assert [row for row in host.rows() if row["kind"] == "link"] == [LINK | {"at_us": RUN + 3, "run": RUN}]


def test_what_makes_no_sense_is_left_out_and_said(host: Host) -> None:
    node = host.node()
    for data in (b"{", b"[]", b'{"kind": "unheard"}', b"\xff" * 70, b'{"kind": []}', b"[" * 100_000):
        node.raw_text(data) if len(data) < 1000 else None
    node.delivery(kind=77)
    node.delivery(1)
    host.finish()
    assert host.numbers() == [1]
    assert {row["kind"] for row in host.rows()} == {"node", "delivery"}
    assert [event.records for event in host.told if event.event_name() == "records_refused"] == [6]


def test_a_file_lies_in_the_hour_of_its_first_record_under_the_escaped_name_of_its_node(host: Host) -> None:
    host.node("a/b=c %é 007").delivery()
    host.finish()
    (file,) = host.files()
    assert str(file.relative_to(host.out)) == f"node=a%2Fb%3Dc %25é 007/hour=2026-11-24T00/{RUN}-000000000000.parquet"
    found = parquet.read_metadata(file).metadata
    said = [found[key.encode()].decode() for key in (NODE_KEY, RUN_KEY, MESH_KEY, DROPPED_KEY)]
    assert said == ["a/b=c %é 007", str(RUN), "demo", "0"]


def test_readers_of_partitions_read_the_name_of_a_node_back_as_text(host: Host) -> None:
    names = ["007", "a/b=c %é", "null", "1e3"]
    for name in names:
        host.node(name).delivery()
    host.finish()
    keys = pyarrow.schema([("node", pyarrow.string()), ("hour", pyarrow.string())])
    read = dataset.dataset(host.out, partitioning=dataset.partitioning(keys, flavor="hive")).to_table()
    assert sorted(set(read["node"].to_pylist())) == sorted(names)
    assert set(read["hour"].to_pylist()) == {"2026-11-24T00"}


def test_only_owner_and_group_read_what_the_writer_makes(host: Host) -> None:
    host.node().delivery()
    host.step()
    host.step(after_s=61)
    made = [host.out, *host.out.rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()}
    assert modes == {0o750}
    assert len([path for path in made if path.is_file()]) >= 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o640}


def test_what_was_told_shares_a_row_group_and_each_kind_of_what_was_moved_has_its_own(host: Host) -> None:
    node = host.node()
    node.text(**LINK)
    node.delivery()
    node.text(kind="connection", event="opened", connection=3)
    node.delivery()
    host.finish()
    (file,) = host.files()
    groups = parquet.ParquetFile(file)
    kinds = [set(groups.read_row_group(i)["kind"].to_pylist()) for i in range(groups.num_row_groups)]
    assert kinds == [{"node", "connection", "link"}, {"delivery"}]


def test_an_idle_node_writes_no_file(host: Host) -> None:
    node = host.node()
    for _ in range(5):
        host.step(after_s=4000)
    assert host.files() == []
    node.delivery()
    host.step()
    host.step(after_s=61)
    host.step(after_s=4000)
    assert len(host.files()) == 1


def test_a_file_is_written_when_a_spool_is_full(host: Host) -> None:
    host.options = {"spool_bytes": 10 * ring.SLOT_BYTES}
    node = host.node()
    for number in range(25):
        node.delivery(number)
    host.step()
    assert [sum(row["kind"] == "delivery" for row in rows_of(path)) for path in host.files()] == [10, 10]
    assert node.taken == 25
    host.finish()
    assert host.numbers() == list(range(25))


def test_a_file_is_written_when_its_first_record_has_waited_long_enough(host: Host) -> None:
    node = host.node()
    host.step(after_s=100)
    node.delivery()
    host.step()
    host.step(after_s=59)
    assert host.files() == []
    host.step(after_s=2)
    assert len(host.files()) == 1


def test_records_of_two_hours_lie_in_two_files(host: Host) -> None:
    node = host.node()
    over = end_of_hour_us() - CLOCK
    for number, at_us in enumerate((over - 10, over - 6, over - 5, over)):
        node.delivery(number, at_us, took_us=5)
    host.pass_s(3600)
    host.finish()
    assert [(path.parent.name, numbers_of(path)) for path in host.files()] == [
        ("hour=2026-11-24T00", [0, 1]),
        ("hour=2026-11-24T01", [2, 3]),
    ]


def test_text_of_the_next_hour_lies_in_the_next_file(host: Host) -> None:
    node = host.node()
    over = end_of_hour_us() - CLOCK
    node.delivery(0, over - 10)
    node.text(over, **LINK)
    host.pass_s(3600)
    host.finish()
    kinds = [[row["kind"] for row in rows_of(path) if row.get("event") != "live"] for path in host.files()]
    assert kinds == [["delivery"], ["link"]]


@pytest.mark.parametrize("start_us", [0, 1 << 52, 1 << 63, (1 << 64) - 1])
def test_a_time_that_cannot_be_stops_nothing(host: Host, start_us: int) -> None:
    host.pass_s(7200)
    node = host.node()
    node.delivery(1, start_us)
    node.text(start_us, **LINK)
    node.delivery(2)
    host.finish()
    assert host.numbers() == [1, 2]


def test_when_the_hour_is_over_its_spool_becomes_a_file(host: Host) -> None:
    node = host.node()
    host.utc_us = end_of_hour_us() - 1_000_000
    node.delivery(at_us=host.utc_us - CLOCK)
    host.step()
    assert host.files() == []
    host.step(after_s=2)
    assert [path.parent.name for path in host.files()] == ["hour=2026-11-24T00"]


def test_a_ring_goes_round_and_text_lies_across_its_end(host: Host) -> None:
    node = host.node(capacity=16)
    number = 0
    for _ in range(50):
        while node.delivery(number):
            number += 1
            if number % 5 == 0 and not node.text(**LINK | {"link": number, "name": "n" * 90}):
                break
        host.step()
    host.finish()
    assert host.numbers() == list(range(number))
    links = [row for row in host.rows() if row["kind"] == "link" and row["event"] == "opened"]
    assert len(links) > 40
    assert {row["name"] for row in links} == {"n" * 90}
    lost = sum(row["count"] for row in host.rows() if row["event" if "event" in row else "kind"] == "lost")
    assert lost == node.dropped


def test_text_that_is_written_in_two_goes_is_taken_when_it_is_whole(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    data = b'{"kind":"drop","link":5,"count":3,"cause":"slow"}'.ljust(64)
    head = struct.pack(ring.SLOT, START, 0, len(data), 0, 0, 0, ring.TEXT, 0, 0)
    node.slots(head + data[:32])
    host.step()
    assert node.taken == 1
    node.slots(data[32:])
    host.step()
    assert node.taken == 4
    host.finish()
    assert [row["count"] for row in host.rows() if row["kind"] == "drop"] == [3]


@pytest.mark.parametrize("slots", [1, 3])
def test_text_longer_than_a_spool_has_a_file_all_the_same(host: Host, slots: int) -> None:
    host.options = {"spool_bytes": slots * ring.SLOT_BYTES}
    node = host.node()
    node.delivery(1)
    node.text(**LINK | {"name": "n" * 1000})
    node.delivery(2)
    host.finish()
    assert host.numbers() == [1, 2]
    assert {row["name"] for row in host.rows() if row["kind"] == "link"} == {"n" * 1000}


def test_every_file_opens_with_what_is_live(host: Host) -> None:
    node = host.node()
    node.text(**LINK)
    node.text(kind="credit", event="changed", link=7, credit=5, starved_us=100)
    host.step()
    host.step(after_s=61)
    node.delivery(1, START + 200)
    node.text(START + 300, kind="link", event="closed", link=7)
    host.step()
    host.step(after_s=61)
    node.delivery(2, START + 400)
    host.finish()
    first, second, third = (rows_of(path) for path in host.files())
    assert [row["kind"] for row in first if row.get("event") == "live"] == ["node"]
    live = [row for row in second if row.get("event") == "live"]
    assert live == [
        {"kind": "node", "event": "live", "at_us": RUN + 205, "run": RUN, "role": "router", "version": "1.2.3",
         "topology": "abc", "clock_us": CLOCK, "count": 0},
        LINK | {"event": "live", "at_us": RUN + 205, "run": RUN},
        {"kind": "credit", "event": "live", "at_us": RUN + 205, "run": RUN, "link": 7, "credit": 5},
    ]  # fmt: skip
    assert [row["kind"] for row in third if row.get("event") == "live"] == ["node"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_file_opens_with_the_age_that_messages_in_a_queue_have_then(host: Host, is_killed: bool) -> None:
    node = host.node()
    node.text(START, kind="queue", event="opened", queue=1, address="orders")
    node.text(START + 7, kind="queue", event="changed", queue=1, depth_count=3, depth_bytes=9, oldest_us=2)
    host.step()
    # Ages are by a clock that nobody sets.
    node.set_clock(CLOCK - 50_000_000)
    host.step()
    if is_killed:
        host.stop()
        host.step()
    host.step(after_s=61)
    for seconds in (100, 4000):
        node.delivery(1, START + seconds * 1_000_000, took_us=5)
        host.step()
        host.step(after_s=61)
    host.finish()
    first, *rest = ([row for row in rows_of(path) if row["kind"] == "queue"] for path in host.files())
    assert [row["event"] for row in first] == ["opened", "changed"]
    queue = {"kind": "queue", "event": "live", "run": RUN, "queue": 1, "address": "orders", "depth_count": 3}
    assert rest == [
        [queue | {"depth_bytes": 9, "at_us": RUN + 50_000_005, "oldest_us": 100_000_000}],
        [queue | {"depth_bytes": 9, "at_us": RUN + 3_950_000_005, "oldest_us": 4_000_000_000}],
    ]


def test_what_is_live_outlives_the_writer(host: Host) -> None:
    node = host.node()
    node.text(**LINK)
    host.finish()
    node.text(**LINK | {"link": 8})
    host.step()
    host.stop()
    host.step(after_s=61)
    host.step(after_s=61)
    node.delivery()
    host.finish()
    live = [[row.get("link") for row in rows_of(path) if row.get("event") == "live"] for path in host.files()]
    assert live == [[None], [None, 7], [None, 7, 8]]


def test_lost_records_are_said_once_with_how_many(host: Host) -> None:
    node = host.node(capacity=4)
    for number in range(7):
        node.delivery(number)
    host.step()
    host.stop()
    for number in range(10, 16):
        node.delivery(number)
    host.finish()
    assert [row["count"] for row in host.rows() if row.get("event") == "lost"] == [3, 2]
    assert parquet.read_metadata(host.files()[-1]).metadata[DROPPED_KEY.encode()] == b"5"


def test_a_clock_that_was_set_is_a_row_and_later_records_go_by_it(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    node.set_clock(CLOCK + 40_000)
    host.step()
    node.set_clock(CLOCK + 80_000)
    host.step()
    node.set_clock(CLOCK + 200_000)
    node.delivery(2)
    host.finish()
    assert [row["clock_us"] for row in host.rows() if row.get("event") == "changed"] == [CLOCK + 200_000]
    assert [row["at_us"] for row in host.rows() if row["kind"] == "delivery"] == [RUN + 5, RUN + 200_005]


def test_after_a_clock_was_set_back_to_an_hour_before_records_lie_in_that_hour(host: Host) -> None:
    node = host.node()
    over = end_of_hour_us() - CLOCK
    host.utc_us = end_of_hour_us() + 10_000_000
    node.delivery(1, over + 5_000_000, took_us=5)
    host.step()
    host.utc_us -= 20_000_000
    node.set_clock(CLOCK - 20_000_000)
    node.delivery(2, over + 12_000_000, took_us=5)
    host.step()
    host.pass_s(60)
    node.delivery(3, over + 60_000_000, took_us=5)
    host.finish()
    assert {(path.parent.name, *numbers_of(path)) for path in host.files()} == {
        ("hour=2026-11-24T01", 1),
        ("hour=2026-11-24T00", 2),
        ("hour=2026-11-24T01", 3),
    }
    (changed,) = [row for row in host.rows() if row.get("event") == "changed"]
    assert changed["clock_us"] == CLOCK - 20_000_000


def test_a_clock_that_is_set_back_within_the_hour_begins_no_file(host: Host) -> None:
    node = host.node()
    node.delivery(1)
    host.step()
    host.utc_us -= 20_000_000
    node.set_clock(CLOCK - 20_000_000)
    node.delivery(2)
    host.finish()
    assert [numbers_of(path) for path in host.files()] == [[1, 2]]


def test_files_of_a_run_follow_each_other_by_name(host: Host) -> None:
    node = host.node()
    for number in range(5):
        node.delivery(number)
        host.step(after_s=61)
        host.step(after_s=61)
    firsts = [min(row["size_bytes"] for row in rows_of(path) if row["kind"] == "delivery") for path in host.files()]
    assert len(firsts) == 5
    assert all(before < after for before, after in pairwise(firsts))

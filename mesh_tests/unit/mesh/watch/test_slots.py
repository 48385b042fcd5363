"""Do the sums and rows that are read of slots say what the node recorded?"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.watch.slots import MOST_TEXT_BYTES, Alike, read_slots
from mesh_tests.handmade_ring import slot, text
from mesh_tests.rings import Ring
from mesh_tests.sim.recorded import router
from recording import ring_format as layout
from recording.columns import RecordOutcome
from recording.records import Recorder
from recording.ring_format import DELIVERY, KINDS, OUTCOMES, SLOT_BYTES, TEXT, TRAFFIC
from wire.delivery import ACCEPTED, RELEASED, rejected

CODES = {outcome: code for code, outcome in OUTCOMES.items()}


def written(ring: Ring) -> bytes:
    end = layout.HEADER_BYTES + ring.number(layout.WRITTEN_AT) * SLOT_BYTES
    return bytes(ring.memory[layout.HEADER_BYTES : end])


@pytest.mark.parametrize("level", ["full", "summary"])
def test_deliveries_of_a_router_are_summed_alike_at_both_levels(level: str):
    ring = Ring(4096)
    mesh = router(ring, level)
    receiver = mesh.client("r1").receiver("rpc", credit=50)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    for number in range(30):
        mesh.send(sender, bytes(10 + number), settled=number % 5 == 4)
    mesh.run_until(lambda: len(receiver.messages) == 30)
    for number, (delivery, message) in enumerate(list(receiver.held)):
        receiver.answer(delivery, message, (ACCEPTED, RELEASED, rejected("amqp:not-allowed", "no"))[number % 3])
    mesh.run(2.5)
    mesh.tell_second("r1")
    found = read_slots(written(ring), clock_us=5_000_000)
    assert found.rest == b""
    assert found.unreadable == 0
    links = {row["link"]: row["role"] for _, row in found.rows if row["kind"] == "link"}
    assert {links[alike.incoming] for alike in found.deliveries} == {"producer"}
    assert {links[alike.outgoing] for alike in found.deliveries} == {"consumer"}
    assert {OUTCOMES[alike.outcome]: sums.count for alike, sums in found.deliveries.items()} == {
        RecordOutcome.NONE: 6,
        RecordOutcome.ACCEPTED: 8,
        RecordOutcome.RELEASED: 8,
        RecordOutcome.REJECTED: 8,
    }
    assert sum(sums.size_bytes for sums in found.deliveries.values()) == sum(10 + number for number in range(30))
    for sums in found.deliveries.values():
        assert sum(sums.latencies.values()) == sums.count
        assert 5_000_000 <= sums.last_us <= 5_000_000 + mesh.now * 1e6 + 1e6


deliveries = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([DELIVERY, TRAFFIC]),
        "start_us": st.integers(0, 1 << 50),
        "took_us": st.one_of(st.integers(0, (1 << 32) - 1), st.sampled_from([999_999, 1_000_000, 10_000_000])),
        "size_bytes": st.integers(0, (1 << 32) - 1),
        "incoming": st.integers(0, 3),
        "outgoing": st.integers(0, 3),
        "count": st.integers(1, 1000),
        "outcome": st.sampled_from(sorted(OUTCOMES)),
        "part": st.integers(0, 2),
    }
)


@settings(deadline=None)
@given(st.lists(deliveries, max_size=40))
def test_sums_are_those_of_the_slots(found: list[dict[str, int]]):
    read = read_slots(b"".join(slot(**each) for each in found), clock_us=-3).deliveries
    count, size, delayed, delayed_long = Counter(), Counter(), Counter(), Counter()
    last: dict[Alike, int] = {}
    for each in found:
        alike = Alike(each["incoming"], each["outgoing"], each["outcome"], each["part"])
        count[alike] += each["count"]
        size[alike] += each["size_bytes"]
        delayed[alike] += each["count"] * (each["took_us"] >= 1_000_000)
        delayed_long[alike] += each["count"] * (each["took_us"] >= 10_000_000)
        end_us = each["start_us"] + (each["took_us"] if each["kind"] == DELIVERY else 0)
        last[alike] = max(last.get(alike, 0), end_us)
    assert {alike: sums.count for alike, sums in read.items()} == dict(count)
    for alike, sums in read.items():
        assert (sums.size_bytes, sums.delayed, sums.delayed_long, sums.last_us) == (
            size[alike], delayed[alike], delayed_long[alike], last[alike] - 3,
        )  # fmt: skip


def test_messages_are_counted_by_event_and_queue():
    kinds = [kind for kind in KINDS if kind not in (DELIVERY, TRAFFIC)]
    data = b"".join(slot(kind, incoming=queue, count=kind) for kind in kinds for queue in (7, 8, 7))
    assert read_slots(data, 0).messages == {(kind, q): kind * n for kind in kinds for q, n in ((7, 2), (8, 1))}


ROWS = st.lists(
    st.fixed_dictionaries({"kind": st.sampled_from(["link", "path"]), "name": st.text(max_size=200)}), max_size=8
)


@settings(deadline=None)
@given(ROWS, st.data())
def test_texts_that_span_reads_are_read_once_and_in_order(rows: list[dict[str, str]], data: st.DataObject):
    ring = Ring(4096)
    recorder = Recorder(ring.memory, "full")
    recorder.set_now(2.0)
    for row in rows:
        recorder.tell(row)
    slots = written(ring)
    count = len(slots) // SLOT_BYTES
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=6)))
    found, rest = [], b""
    for begin, end in zip([0, *cuts], [*cuts, count], strict=True):
        read = read_slots(rest + slots[begin * SLOT_BYTES : end * SLOT_BYTES], clock_us=1)
        rest = read.rest
        found += read.rows
        assert read.unreadable == 0
    assert rest == b""
    assert found == [(2_000_001, row) for row in rows]


@pytest.mark.parametrize("bad", [b"{", b"\xff\xfe", b"[1]", b'"link"', b"{}", b'{"kind": 3}'])
def test_a_text_that_is_no_row_is_counted_and_what_follows_is_read(bad: bytes):
    found = read_slots(text(bad) + slot(200) + text({"kind": "link"}) + slot(DELIVERY), 0)
    assert found.unreadable == 2
    assert [row for _, row in found.rows] == [{"kind": "link"}]
    assert sum(sums.count for sums in found.deliveries.values()) == 1


def test_a_text_that_is_said_to_be_longer_than_any_is_not_waited_for():
    found = read_slots(slot(TEXT, size_bytes=MOST_TEXT_BYTES + 1) + text({"kind": "link"}), 0)
    assert (found.unreadable, found.rest) == (1, b"")
    assert [row for _, row in found.rows] == [{"kind": "link"}]


NUMBERED = st.integers(0, 9).map(lambda number: json.dumps({"kind": "link", "link": number}).encode())
DAMAGED = st.sampled_from(
    [
        b"",
        b"{",
        b'{"kind": "link", "name": "',
        b'"}',
        b'{"kind": "link"',
        b'"link": 7}',
        b'{"kind": "link"}, 0, {"kind": "link"}',
        b"[[",
        b"]]",
        b"0",
        b"\xff",
        b"[" * 100_000,
    ]
)


@settings(deadline=None)
@given(st.lists(st.one_of(NUMBERED, DAMAGED), max_size=12))
def test_whatever_texts_are_damaged_all_others_are_read_in_order(texts: list[bytes]):
    found = read_slots(b"".join(map(text, texts)), 0)
    whole = [json.loads(each) for each in texts if re.fullmatch(rb'\{"kind": "link", "link": \d\}', each)]
    assert [row for _, row in found.rows] == whole
    assert found.unreadable == len(texts) - len(whole)

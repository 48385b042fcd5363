"""A ring from which nobody takes records: the node overwrites the oldest, and a reader that was too slow knows so."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mesh_tests.rings import Ring
from mesh_tests.seeds import seeds
from recording import ring_format as layout
from recording.columns import RecordEvent, RecordKind
from recording.records import Recorder
from recording.state_records import StateRecorder

ROOM = 796


def test_a_node_never_lacks_room_and_drops_nothing() -> None:
    ring = Ring(ROOM, overwrites=True)
    teller = StateRecorder(Recorder(ring.memory, "full"))
    for number in range(5 * ROOM):
        teller.tell(RecordKind.QUEUE, RecordEvent.OPENED, queue=number, address="x" * 40)
        assert teller.tell_live({"kind": RecordKind.QUEUE, "event": RecordEvent.LIVE, "queue": number})
    assert ring.number(layout.WRITTEN_AT) > 10 * ROOM
    assert (ring.number(layout.DROPPED_AT), ring.number(layout.TAKEN_AT)) == (0, 0)


@pytest.mark.parametrize("seed", seeds(20))
def test_whatever_a_reader_gets_is_without_a_gap_unless_it_knows_of_one(seed: int) -> None:
    chance, ring = random.Random(seed), Ring(ROOM, overwrites=True)
    recorder = Recorder(ring.memory, "full")
    position = written = expected = 0
    late = 0
    for _ in range(400):
        for _ in range(chance.randint(0, chance.choice((20, 400)))):
            written += 1
            recorder.tell(
                {"kind": "queue", "event": "opened", "queue": written, "address": "x" * chance.randint(0, 900)}
            )
        found = ring.read_from(position)
        position = ring.number(layout.WRITTEN_AT)
        if found is None:
            late += 1
        else:
            assert [row["queue"] for row in found[1]] == list(range(expected + 1, written + 1))
        expected = written
    assert 0 < late < 400
    assert ring.number(layout.DROPPED_AT) == 0


def text_of(slots: int) -> dict[str, Any]:
    """A row that takes as many slots, the one with its length included."""
    row = {"kind": "path", "egress": ""}
    empty = len('{"kind":"path","egress":""}')
    return row | {"egress": "x" * ((slots - 1) * layout.SLOT_BYTES - empty)}


def test_no_record_is_so_long_that_a_reader_would_take_its_beginning_for_an_old_record() -> None:
    ring = Ring(ROOM, overwrites=True)
    recorder = Recorder(ring.memory, "full")
    most = (ROOM + layout.LAST_SLOTS) // layout.AHEAD_PART - 1
    assert recorder.tell(text_of(most))
    assert (ring.number(layout.WRITTEN_AT), ring.number(layout.DROPPED_AT)) == (most, 0)
    # A longer one is dropped, and nobody tries it again.
    assert recorder.tell(text_of(most + 1))
    assert (ring.number(layout.WRITTEN_AT), ring.number(layout.DROPPED_AT)) == (most, 1)


def test_the_end_of_a_node_is_the_last_record_of_a_full_ring() -> None:
    ring = Ring(ROOM, overwrites=True)
    recorder = Recorder(ring.memory, "full")
    for _ in range(3 * ROOM):
        recorder.tell({"kind": "path", "egress": "r2"})
    before = ring.number(layout.WRITTEN_AT)
    recorder.tell_last({"kind": "node", "event": "closed", "cause": "stopped"})
    assert ring.read_from(before) == ([], [{"kind": "node", "event": "closed", "cause": "stopped"}])

"""Live rows that a reader asked for come behind what is pending, and never take the room that events need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mesh_tests.rings import Ring
from recording import ring_format as layout
from recording.columns import RecordEvent, RecordKind
from recording.live_rows import ROWS_AT_ONCE, TURN_S, WAIT_S, LiveRows, RowMaker
from recording.pending_records import Row
from recording.records import Recorder
from recording.state_records import StateRecorder, row_of


class Queues:
    """A node that has queues only."""

    def __init__(self, ring: Ring, count: int) -> None:
        self.teller = StateRecorder(Recorder(ring.memory, "full"))
        self.depths = dict.fromkeys(range(count), 0)
        self.delays: list[float] = []
        self.rows = LiveRows(self.teller, self.things, self.delays.append)

    def things(self) -> Iterator[RowMaker]:
        for queue in list(self.depths):
            yield lambda queue=queue: self.row(queue)

    def row(self, queue: int) -> Row | None:
        depth = self.depths.get(queue)
        if depth is None:
            return None
        return row_of(RecordKind.QUEUE, RecordEvent.LIVE, queue=queue, address="a" * 60, depth_count=depth)


def test_a_list_leaves_a_quarter_of_the_ring_free_and_goes_on_once_there_is_room():
    ring = Ring(396)
    node = Queues(ring, 200)
    node.rows.request()
    while node.delays[-1] != WAIT_S:
        node.rows.take_turn()
    slots = ring.number(layout.WRITTEN_AT)
    assert 290 <= slots <= 310
    node.rows.take_turn()
    assert ring.number(layout.WRITTEN_AT) == slots
    # What is written late is as it is then, and what is gone by then is not written.
    told = [row["queue"] for row in ring.take()[1]]
    late = len(told)
    node.depths[late] = 7
    del node.depths[late + 1]
    node.rows.take_turn()
    rows = ring.take()[1]
    assert [(row["queue"], row["depth_count"]) for row in rows[:2]] == [(late, 7), (late + 2, 0)]
    assert ring.number(layout.DROPPED_AT) == 0
    assert node.delays[-1] == TURN_S


def test_a_list_waits_for_what_is_pending():
    ring = Ring(64)
    node = Queues(ring, 1)
    number = 100
    while ring.number(layout.DROPPED_AT) == 0:
        number += 1
        node.teller.tell(RecordKind.QUEUE, RecordEvent.OPENED, queue=number, address="b" * 60)
    ring.take()
    node.rows.request()
    node.rows.take_turn()
    assert ring.take()[1] == []
    node.teller.end_second()
    node.rows.take_turn()
    pending, live, listed = ring.take()[1]
    assert (pending["queue"], live["queue"], listed["event"], listed["count"]) == (number, 0, "listed", 1)


def test_a_fault_in_a_row_ends_the_list_without_its_last_record_and_the_next_request_begins_another():
    ring = Ring(1024)
    node = Queues(ring, 2 * ROWS_AT_ONCE)
    node.depths[3] = object()  # type: ignore[assignment]
    node.rows.request()
    with pytest.raises(TypeError):
        node.rows.take_turn()
    assert node.delays == [0.0]
    ring.take()
    node.depths[3] = 0
    node.rows.request()
    for _ in range(3):
        node.rows.take_turn()
    assert [row["event"] for row in ring.take()[1]] == ["live"] * 2 * ROWS_AT_ONCE + ["listed"]


def test_a_turn_without_a_list_does_nothing():
    ring = Ring(64)
    node = Queues(ring, 1)
    node.rows.take_turn()
    assert (ring.take(), node.delays) == (([], []), [])

"""Pages that lead to the last segments are damaged: new ones go elsewhere, and old ones are read as far as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.store.aside import aside_of
from broker.store.batch import BodyRange, QueueKind, QueueRow, StoreError, WriteBatch
from broker.store.compaction import compact
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from broker.store.sqlite import SqliteStore
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.broker.store.damaging import findings_of, inner_pages_of, pages_of, spoil_page
from wire.delivery import ACCEPTED

COUNT = 30
PADDING = "x" * 3000


def fill(rig: Rig) -> None:
    """A segment for each message, and about a page for each segment."""
    producer = rig.client().producer("orders")
    for number in range(COUNT):
        producer.send(f"number {number} {PADDING}")
    rig.restart()


def numbers_in(bodies: list[str]) -> list[int]:
    return [int(body.split()[1]) for body in bodies]


@pytest.mark.parametrize(("page", "least"), [(-1, COUNT - 3), (0, 0)])
def test_a_broker_goes_on_where_the_last_segments_cannot_be_reached(rig: Rig, page: int, least: int) -> None:
    fill(rig)
    before = rig.inventory.next_message_id
    rig.crash(lambda: spoil_page(rig.data, pages_of(rig.data, "segment")[page]))
    table, *segments = rig.inventory.damages
    assert table.startswith("table segment was damaged, and was renamed to segment_damaged_1: ")
    assert rig.inventory.next_message_id > before + 1_000_000_000, "a number that may have been there"
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    for _ in range(2):
        consumer = rig.client("reader").consumer("orders")
        assert consumer.bodies[-1] == "new"
        came = numbers_in(consumer.bodies[:-1])
        assert came == list(range(len(came)))
        assert least <= len(came) < COUNT
        assert lost_in(segments) == COUNT - len(came)
        rig.crash_damaged()
        segments = rig.inventory.damages
    assert_all_can_be_taken(rig)


def lost_in(damages: list[str]) -> int:
    assert all("messages are not delivered" in damage for damage in damages), damages
    return sum(int(damage.split(" messages are not delivered")[0].rpartition(" ")[2]) for damage in damages)


def assert_all_can_be_taken(rig: Rig) -> None:
    for received in rig.client("reader").consumer("orders").received:
        received.give(ACCEPTED)
    rig.crash_damaged()
    assert rig.queue("orders").queue.available_count == 0
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("newer")] == ACCEPTED
    assert rig.client("reader").consumer("orders").bodies == ["newer"]


def test_check_and_dump_go_through_all_that_can_be_read(rig: Rig) -> None:
    fill(rig)
    rig.crash(lambda: spoil_page(rig.data, pages_of(rig.data, "segment")[-1]))
    rig.client().producer("orders").send("new")
    found = findings_of(rig)
    assert "store.db: segment_damaged_1 was found damaged when a broker started, and was put aside" in found
    assert any("is lost, with messages of this queue" in finding for finding in found)
    rig.store.close()
    with pytest.raises(StoreError, match="is damaged, and was not changed"):
        compact(rig.data)
    with reading(rig.data) as store:
        dumped = [message.message_id for message in stored_messages(store)]
    rig.store = SqliteStore(rig.data)
    assert dumped == sorted(dumped)
    assert dumped[-1] > 1_000_000_000
    assert COUNT - 3 <= len(dumped) - 1 < COUNT


MANY = 900


def with_many_segments(directory: Path) -> None:
    store = SqliteStore(directory)
    store.load()
    ids = range(1, 2 * MANY, 2)
    store.commit(
        WriteBatch(
            queues=[QueueRow(1, QueueKind.QUEUE, "orders")],
            messages=[(number, 2500, 4, None, b"%04d" % number + bytes(2496)) for number in ids],
            entries=[(1, number, 0) for number in ids],
        )
    )
    store.close()


def test_segments_of_other_branches_are_read(tmp_path: Path) -> None:
    with_many_segments(tmp_path)
    inner = inner_pages_of(tmp_path, "segment")
    assert len(inner) >= 3, "a root, and two below"
    spoil_page(tmp_path, inner[-1])
    store = SqliteStore(tmp_path)
    inventory = store.load()
    held = held_by(inventory)
    there = [message_id for message_id, *_ in held.messages]
    assert MANY // 4 < len(there) < MANY
    assert there == list(range(1, 2 * len(there), 2))
    (body,) = store.read([BodyRange(there[-1], False, 0, 2500)])
    assert isinstance(body, bytes)
    assert int(body[:4]) == there[-1]
    # A log that nobody would read to the end.
    assert len(held.damages) < 30
    assert lost_in(held.damages[1:]) == MANY - len(there)
    store.close()


def test_a_page_of_segments_in_the_middle_needs_no_new_table(rig: Rig) -> None:
    fill(rig)
    rig.crash(lambda: spoil_page(rig.data, pages_of(rig.data, "segment")[COUNT // 2]))
    assert 1 <= lost_in(rig.inventory.damages) <= 2
    assert aside_of(rig.store._writer) == []

"""Queues whose row is damaged: all others are there, and what they had stays on the disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.sqlite import SqliteStore
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.broker.store.damaging import findings_of, pages_of, root_of, spoil_page, spoil_word
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
LARGE = bytes(600_000)


def rows_in(directory: Path, table: str) -> int:
    with closing(sqlite3.connect(directory / "store.db")) as database:
        (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


def fill(rig: Rig) -> None:
    client = rig.client()
    for address in ("orders", "parked"):
        producer = client.producer(address, name=address)
        for number in range(3):
            producer.send(f"{address} {number}")
    rig.restart()


def test_a_broker_whose_queues_all_are_lost_begins_with_new_ones(rig: Rig) -> None:
    fill(rig)
    rig.crash(lambda: spoil_page(rig.data, root_of(rig.data, "queue")))
    assert rig.inventory.queues == []
    table, *lost = rig.inventory.damages
    assert table.startswith("table queue was damaged, and was renamed to queue_damaged_1: ")
    assert lost == [f"queue {number} is lost, and its 3 messages are unreachable in the file" for number in (1, 2)]
    works_anew(rig)
    for _ in range(2):
        rig.crash_damaged()
        assert rig.inventory.damages == lost
        assert [row.address for row in rig.inventory.queues] == ["orders"]


def works_anew(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    consumer = client.consumer("orders")
    assert consumer.bodies == ["new"]
    consumer.received[0].give(ACCEPTED)
    consumer.close()
    (row,) = [queue for queue in rig.store.load().queues if queue.address == "orders"]
    assert row.queue_id > 1000, "one that may have been there"


def test_check_says_which_queues_are_lost_before_and_after_a_start(rig: Rig) -> None:
    fill(rig)
    rig.store.close()
    spoil_page(rig.data, root_of(rig.data, "queue"))
    rig.store = SqliteStore(rig.data)
    for _ in range(2):
        found = findings_of(rig)
        for number in (1, 2):
            assert f"queue {number} is lost, and its 3 messages are unreachable" in found
    assert any("queue_damaged_1" in finding for finding in findings_of(rig))


QUEUES = 590


def with_many_queues(directory: Path) -> None:
    """Each with a message, all of those in three segments."""
    store = SqliteStore(directory)
    store.load()
    ids = range(1, QUEUES + 1)
    store.commit(
        WriteBatch(
            queues=[QueueRow(number, QueueKind.QUEUE, f"queue number {number}") for number in ids],
            messages=[(number, 5, 4, None, b"hello") for number in ids],
            entries=[(number, number, 0) for number in ids],
        )
    )
    store.close()


def numbers_in(rows: list[QueueRow]) -> set[int]:
    assert all(row.address == f"queue number {row.queue_id}" for row in rows)
    return {row.queue_id for row in rows}


@pytest.mark.parametrize("damaged", [(1,), (2,), (-2,), (-1,), (2, -2)])
def test_queues_of_other_pages_are_all_there_with_their_messages(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    with_many_queues(tmp_path)
    pages = pages_of(tmp_path, "queue")
    assert len(pages) >= 5, "a root, and leaves"
    for place in damaged:
        spoil_page(tmp_path, pages[place])
    store = SqliteStore(tmp_path)
    inventory = store.load()
    held = held_by(inventory)
    found = numbers_in(held.queues)
    # Of the row at its edge, a page above has the number.
    assert QUEUES * (1 - (len(damaged) + 0.2) / (len(pages) - 1)) - 5 < len(found) < QUEUES
    assert {queue_id for queue_id, *_ in held.entries} == found
    assert len(held.damages) == 1 + QUEUES - len(found)
    assert inventory.next_queue_id > QUEUES + 1000
    store.close()


@pytest.mark.parametrize(
    ("word", "by"),
    [(b"subscriptionalerts.#absent", b"subskriptionalerts.#absent"), (b"alerts.#absent", b"alerts.#abs\xffnt")],
)
def test_a_spoiled_row_is_lost_and_what_it_shares_with_others_stays(rig: Rig, word: bytes, by: bytes) -> None:
    for name in ("absent", "reads"):
        rig.client(name).consumer("alerts.#", name=name, **DURABLE).detach()
    producer = rig.client().producer("alerts.fire")
    producer.send("small"), producer.send(LARGE)
    rig.restart()
    rig.crash(lambda: spoil_word(rig.data, word, by))
    assert any("is lost, and its 2 messages are" in damage for damage in rig.inventory.damages)
    segments = rows_in(rig.data, "segment")
    consumer = rig.client("reads").consumer("alerts.#", name="reads", **DURABLE)
    assert consumer.bodies == ["small", LARGE]
    for received in consumer.received:
        received.give(ACCEPTED)
    rig.crash_damaged()
    assert rig.queue("alerts.#").queue.available_count == 0
    assert rows_in(rig.data, "segment") == segments
    assert len(list((rig.data / "large").iterdir())) == 1

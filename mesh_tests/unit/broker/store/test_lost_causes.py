"""Where it cannot be read what made messages dead letters, that is lost, and nothing else: least of all the letters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.cause import Cause, Reason
from broker.store.sqlite import SqliteStore
from mesh_tests.inventories import Held, held_by
from mesh_tests.unit.broker.rig import Rig, topology_with
from mesh_tests.unit.broker.store.damaging import findings_of, pages_of, root_of, spoil_page, spoil_word
from wire.delivery import ACCEPTED, rejected

REJECTED = rejected("amqp:decode-error", "no")
ADDRESSES = {"orders": {"type": "queue", "dead_letter": "dead"}, "dead": "queue"}
COUNT = 600


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES))
    yield rig
    rig.store.close()


def reject_two(rig: Rig) -> None:
    """One of them would have expired since, had it not been rejected."""
    producer = rig.client().producer("orders")
    producer.send("short lived", ttl_s=60.0), producer.send("long lived")
    consumer = rig.client("rejects").consumer("orders")
    for received in consumer.received:
        received.give(REJECTED)
    rig.restart()
    rig.advance(120.0)


def letters(rig: Rig) -> dict[str, object]:
    consumer = rig.client("reader").consumer("dead")
    found = {
        received.message.body: (received.message.annotations or {}).get("x-opt-dead-letter-reason")
        for received in consumer.received
    }
    consumer.close()
    return found


def test_a_damaged_table_of_causes_takes_the_reasons_away_and_no_letter(rig: Rig) -> None:
    reject_two(rig)
    assert letters(rig) == {"short lived": "rejected", "long lived": "rejected"}
    rig.crash(lambda: spoil_page(rig.data, root_of(rig.data, "cause")))
    (damage,) = rig.inventory.damages
    assert damage == (
        "table cause was damaged, and was renamed to cause_damaged_1: 0 of its rows could be read; "
        "1 messages that may have been dead letters no longer expire"
    )
    for _ in range(2):
        assert letters(rig) == {"short lived": None, "long lived": None}
        rig.crash_damaged()
        assert rig.inventory.damages == []
        rig.advance(120.0)


@pytest.mark.parametrize(
    ("word", "by"), [(b"rejectedorders", b"rejecteeorders"), (b"rejectedorders", b"rejectedord\xffrs")]
)
def test_a_spoiled_word_takes_its_own_cause_away(rig: Rig, word: bytes, by: bytes) -> None:
    reject_two(rig)
    rig.crash(lambda: spoil_word(rig.data, word, by))
    assert all("the dead-letter cause of message" in damage for damage in rig.inventory.damages)
    assert len(rig.inventory.damages) == 2
    for _ in range(2):
        assert letters(rig) == {"short lived": None, "long lived": None}
        rig.restart()
        assert rig.inventory.damages == []
    consumer = rig.client("reader").consumer("dead")
    for received in consumer.received:
        received.give(ACCEPTED)
    assert findings_of(rig) == []


def with_many_letters(directory: Path) -> None:
    """All with a deadline that is over."""
    store = SqliteStore(directory)
    store.load()
    ids = range(1, COUNT + 1)
    store.commit(
        WriteBatch(
            queues=[QueueRow(1, QueueKind.QUEUE, "dead"), QueueRow(2, QueueKind.QUEUE, "orders")],
            messages=[(number, 5, 4, 1_600_000_000_000, b"hello") for number in ids],
            entries=[(1, number, 0) for number in ids] + [(2, number, 0) for number in ids],
            causes=[(1, number, Cause(Reason.REJECTED, "orders", 3, number)) for number in ids],
        )
    )
    store.close()


@pytest.mark.parametrize("damaged", [(1,), (2,), (-1,), (2, -2)])
def test_only_causes_of_damaged_pages_are_lost(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    with_many_letters(tmp_path)
    pages = pages_of(tmp_path, "cause")
    assert len(pages) >= 6, "a root, and leaves"
    for place in damaged:
        spoil_page(tmp_path, pages[place])
    for _ in range(2):
        store = SqliteStore(tmp_path)
        held = held_by(store.load())
        store.close()
        assert_no_letter_may_expire(held)
        whole = sum(cause.reason is Reason.REJECTED for cause in held.causes.values())
        # Between two damaged pages nothing is looked for.
        first, last = damaged[0] % len(pages), damaged[-1] % len(pages)
        assert whole > COUNT * (1 - (last - first + 1.2) / (len(pages) - 1)) - 10
        assert whole < COUNT


def assert_no_letter_may_expire(held: Held) -> None:
    assert len(held.entries) == 2 * COUNT
    assert {(1, number) for number in range(1, COUNT + 1)} <= set(held.causes)
    for (_, number), cause in held.causes.items():
        assert cause in (Cause(Reason.REJECTED, "orders", 3, number), Cause(Reason.MOVED, "", 0, 0))


def test_check_says_which_causes_cannot_be_read(rig: Rig) -> None:
    reject_two(rig)
    rig.store.close()
    spoil_word(rig.data, b"rejectedorders", b"rejecteeorders")
    rig.store = SqliteStore(rig.data)
    found = findings_of(rig)
    assert len(found) == 2
    assert all("'rejectee' is not a valid Reason" in finding for finding in found)


def test_a_row_that_says_no_number_of_a_message_counts_as_lost(rig: Rig) -> None:
    reject_two(rig)
    # What the columns of a row are: the number is nothing now.
    rig.crash(lambda: spoil_word(rig.data, b"\x01\x1d\x19", b"\x00\x1d\x19"))
    assert "table cause was damaged" in rig.inventory.damages[0]
    assert set(letters(rig)) == {"short lived", "long lived"}

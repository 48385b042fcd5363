"""One damaged page or file takes its messages away, and nothing else."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from broker.events import MessageUnreadable
from broker.operating import administration
from broker.store.batch import MessageRow, WriteBatch
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import Producer, Rig, topology_with
from mesh_tests.unit.broker.store.damaging import checkpoint, findings_of, root_of, spoil, spoil_page
from wire.delivery import ACCEPTED
from wire.message import Message, encode

HALF = bytes(15_000)
COUNT = 60
QUEUE = {"type": "queue"}
LARGE = bytes(600_000)


def page_of(directory: Path, needle: bytes) -> tuple[int, int]:
    """Where a message lies in the file: its offset there, and that of the page."""
    content = (directory / "store.db").read_bytes()
    offset = content.index(needle)
    return offset, offset // 4096 * 4096


def flip_a_byte(directory: Path, needle: bytes) -> None:
    offset, _ = page_of(directory, needle)
    spoil(directory, offset, b"~")


def break_the_chain(directory: Path, needle: bytes) -> None:
    """The page's pointer to the next one leads nowhere."""
    _, page = page_of(directory, needle)
    spoil(directory, page, b"\x7f\xff\xff\xff")


def fill(rig: Rig) -> None:
    """Message n says so in its subject, and in the middle of its body."""
    producer = rig.client().producer("orders")
    for number in range(COUNT):
        producer.send(HALF + b"needle %03d" % number + HALF, subject=f"number {number:03}")


@pytest.mark.parametrize("damage", [flip_a_byte, break_the_chain])
def test_messages_of_a_damaged_page_stay_away_and_all_others_come(
    rig: Rig, damage: Callable[[Path, bytes], None]
) -> None:
    fill(rig)
    rig.restart()
    rig.crash(lambda: damage(rig.data, b"needle 030"))
    consumer = rig.client().consumer("orders", credit=1000)
    came = {received.message.subject for received in consumer.received}
    away = {event.message_id for event in rig.log if isinstance(event, MessageUnreadable)}
    assert "number 030" not in came
    assert len(came) == COUNT - len(away)
    assert 1 <= len(away) < COUNT // 2
    assert rig.queue("orders").queue.unreadable_count == len(away)
    assert check_says_so(rig)
    for received in consumer.received:
        received.give(ACCEPTED)
    rig.client("other").producer("orders").send("new")
    assert consumer.bodies[-1] == "new"


def check_says_so(rig: Rig) -> bool:
    is_sound = check_again(rig)
    rig.store.load()
    return not is_sound


def check_again(rig: Rig) -> bool:
    rig.store.close()
    is_sound = check(rig.data).is_sound
    rig.store = SqliteStore(rig.data)
    return is_sound


def test_a_queue_with_a_damaged_message_can_be_drained(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    rig.crash(lambda: flip_a_byte(rig.data, b"needle 030"))
    consumer = rig.client().consumer("orders", credit=0)
    consumer.link.request_drain(1000)
    rig.run()
    assert not consumer.link.is_drain_pending
    assert len(consumer.received) == COUNT - 1


def test_a_large_body_that_is_cut_is_void_for_who_was_being_given_it(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send(LARGE), producer.send("small")
    (path,) = (rig.data / "large").iterdir()
    path.write_bytes(path.read_bytes()[:300_000])
    consumer = client.consumer("orders")
    assert consumer.bodies == ["small"]
    assert rig.queue("orders").queue.unreadable_count == 1


def index_of(rig: Rig, *, first: int) -> bytes:
    """Of the segment with this message, or the next."""
    with closing(sqlite3.connect(rig.data / "store.db")) as database:
        (index,) = database.execute(
            "SELECT message_index FROM segment WHERE segment_id >= ? ORDER BY segment_id", (first,)
        ).fetchone()
    return bytes(index)


def test_a_segment_whose_index_says_something_else_is_left_out(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    offset, _ = page_of(rig.data, index_of(rig, first=30))
    rig.crash(lambda: spoil(rig.data, offset + 7, b"\x00"))
    all_but_the_damaged_works(rig)


@pytest.mark.parametrize("is_mark_open", [False, True])
def test_a_segment_whose_index_cannot_be_read_is_left_out(rig: Rig, is_mark_open: bool) -> None:
    rig.is_disk_held = True
    send_one_segment(rig.client().producer("orders"))
    rig.is_disk_held = False
    rig.run()
    fill(rig)
    rig.restart()
    if is_mark_open:
        rig.client().consumer("orders", credit=1)
    index = index_of(rig, first=1)
    start, middle = page_of(rig.data, index[:100])[1], page_of(rig.data, index[1500:1600])[1]
    assert start != middle, "all of it lies on one page"
    rig.crash(lambda: spoil(rig.data, middle, b"\x7f\xff\xff\xff"))
    all_but_the_damaged_works(rig)


def send_one_segment(producer: Producer) -> None:
    """Of such a length that its index begins on the page of its row, and goes on over two more."""
    length = 256 * 24 + 20
    for number in range(256):
        message = encode(Message(body=f"m{number:04} {'x' * 50}"))
        if number == 255:
            # What SQLite leaves on the page of the row is then as little as it may be.
            padding = -(length + len(message) + 300 - 489) % 4092 + 310
            message = encode(Message(body=f"m{number:04} {'x' * (50 + padding)}"))
        length += len(message)
        producer.send_raw(message)


def all_but_the_damaged_works(rig: Rig) -> None:
    assert any("are not delivered" in damage for damage in rig.inventory.damages), rig.inventory.damages
    consumer = rig.client().consumer("orders", credit=1000)
    assert len(consumer.received) > COUNT // 4
    producer = rig.client("other").producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    assert consumer.bodies[-1] == "new"


def test_a_purge_takes_what_cannot_be_read_and_all_else_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "PART_MESSAGES", 5)
    fill(rig)
    rig.restart()
    rig.crash(lambda: flip_a_byte(rig.data, b"needle 030"))
    rig.client().consumer("orders", credit=31).close()
    Operator(rig).count("purge", address="orders")
    found = rig.queue("orders").queue
    assert (found.available_count, found.unreadable_count) == (0, 0)


@pytest.mark.parametrize("is_read_before", [True, False])
def test_a_damaged_segment_that_nobody_needs_any_more_is_no_trouble(rig: Rig, is_read_before: bool) -> None:
    fill(rig)
    if is_read_before:
        rig.restart()
        rig.crash(lambda: break_the_chain(rig.data, b"needle 030"))
        rig.client("reads").consumer("orders", credit=1000).close()
        assert rig.queue("orders").queue.unreadable_count
    else:
        # In memory all bodies are still what they were.
        rig.store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        break_the_chain(rig.data, b"needle 030")
    assert Operator(rig).count("purge", address="orders") == COUNT
    rig.crash_damaged()
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    assert rig.client("reads").consumer("orders", credit=1000).bodies == ["new"]


def test_what_cannot_be_read_takes_no_room_from_what_can(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data", topology_with({"orders": {**QUEUE, "max_messages": 2, "when_full": "drop-oldest"}}))
    client = rig.client()
    producer = client.producer("orders")
    producer.send(LARGE), producer.send(LARGE)
    for path in (rig.data / "large").iterdir():
        path.write_bytes(b"")
    client.consumer("orders", credit=5).close()
    assert rig.queue("orders").queue.unreadable_count == 2
    producer.send("new")
    assert client.consumer("orders", credit=5, name="other").bodies == ["new"]
    rig.store.close()


@pytest.mark.parametrize("priority", [0x08, 0x0E, 0x0F])
def test_an_index_with_a_priority_that_there_is_not_is_damaged(rig: Rig, priority: int) -> None:
    fill(rig)
    rig.restart()
    index = bytearray(index_of(rig, first=1))
    index[7] = index[7] & 0xF0 | priority
    with closing(sqlite3.connect(rig.data / "store.db")) as database, database:
        database.execute(
            "UPDATE segment SET message_index = ? WHERE segment_id = (SELECT min(segment_id) FROM segment)", (index,)
        )
    assert not check_again(rig)
    rig.crash_damaged()
    all_but_the_damaged_works(rig)


def test_a_holding_of_another_length_takes_its_own_messages_away(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    with closing(sqlite3.connect(rig.data / "store.db")) as database, database:
        database.execute(
            "UPDATE holding SET counts = substr(counts, 2) WHERE segment_id = (SELECT min(segment_id) FROM holding)"
        )
    rig.crash_damaged()
    all_but_the_damaged_works(rig)


@pytest.mark.parametrize("column", ["message_index", "bodies"])
def test_a_segment_that_says_nothing_takes_its_own_messages_away(rig: Rig, column: str) -> None:
    fill(rig)
    rig.restart()
    offset, _ = page_of(rig.data, index_of(rig, first=30))
    # Before the index: what the columns of its row are.
    types = (rig.data / "store.db").read_bytes()[offset - 8 : offset]
    head = types.rindex(b"\x00")
    rig.crash(lambda: spoil(rig.data, offset - 8 + head + (1 if column == "message_index" else 2), b"\x00"))
    findings_of(rig)
    came = rig.client().consumer("orders", credit=1000).received
    assert COUNT // 4 < len(came) < COUNT


def test_a_size_that_is_spoiled_in_an_index_sends_nobody_what_there_is_not(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    offset, _ = page_of(rig.data, index_of(rig, first=30))
    rig.crash(lambda: spoil(rig.data, offset + 5, b"\x01"))
    consumer = rig.client().consumer("orders", credit=1000)
    assert COUNT // 4 < len(consumer.received) < COUNT
    assert rig.queue("orders").queue.unreadable_count + len(rig.inventory.damages) >= 1
    assert check_says_so(rig)


@pytest.mark.parametrize("place", [1, 12, 17, 21], ids=["size", "deadline", "checksum of a body", "its own"])
def test_a_byte_that_changes_in_an_index_is_found(rig: Rig, place: int) -> None:
    fill(rig)
    rig.restart()
    offset, _ = page_of(rig.data, index_of(rig, first=30))
    byte = (rig.data / "store.db").read_bytes()[offset + place]
    rig.crash(lambda: spoil(rig.data, offset + place, bytes([byte ^ 1])))
    (damage,) = rig.inventory.damages
    assert damage.endswith("the segment's index does not match its checksum")
    all_but_the_damaged_works(rig)
    assert any("the segment's index does not match its checksum" in finding for finding in findings_of(rig))


def test_a_count_that_changes_is_found(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    offset = place_of_counts(rig, after=30)
    rig.crash(lambda: spoil(rig.data, offset, b"\x00"))
    (damage,) = rig.inventory.damages
    assert damage.startswith("the messages of queue 1 in segment ")
    all_but_the_damaged_works(rig)
    assert any("do not match their checksum" in finding for finding in findings_of(rig))


def test_a_holding_of_no_queue_is_put_aside(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    # What the columns of the row are: the queue is nothing now.
    offset = place_of_counts(rig, after=30) - 5
    rig.crash(lambda: spoil(rig.data, offset, b"\x00"))
    assert "table holding was damaged" in rig.inventory.damages[0]
    assert len(rig.client().consumer("orders", credit=1000).received) >= COUNT - 2


def place_of_counts(rig: Rig, *, after: int) -> int:
    """Of a holding: its checksum comes next."""
    with closing(sqlite3.connect(rig.data / "store.db")) as database:
        counts, checksum = database.execute(
            "SELECT counts, checksum FROM holding WHERE segment_id > ? AND checksum < 1 << 31", (after,)
        ).fetchone()
    return page_of(rig.data, counts + checksum.to_bytes(4))[0]


SEGMENT, SEGMENTS = 256, 40


def test_a_damaged_page_of_holdings_takes_the_messages_away_that_it_has(rig: Rig) -> None:
    fill_with_segments(rig)
    rig.crash(lambda: spoil_a_page_of_holdings(rig.data))
    assert_all_but_a_page_works(rig)
    rig.crash_damaged()
    assert not any("table" in damage for damage in rig.inventory.damages)
    assert segment_count(rig) >= SEGMENTS, "what a queue may have had is swept"
    assert check_says_so(rig)


def fill_with_segments(rig: Rig) -> None:
    rig.client().producer("orders").send("the first")
    rig.restart()
    rig.store.close()
    store = SqliteStore(rig.data)
    list((inventory := store.load()).segments)
    (queue_id,) = [row.queue_id for row in inventory.queues if row.address == "orders"]
    first = inventory.next_message_id
    ids = range(first, first + SEGMENT * SEGMENTS)
    messages: list[MessageRow] = []
    for message_id in ids:
        body = encode(Message(body=message_id))
        messages.append((message_id, len(body), 4, None, body))
    store.commit(WriteBatch(messages=messages, entries=[(queue_id, message_id, 0) for message_id in ids]))
    rig.store = store


def spoil_a_page_of_holdings(directory: Path) -> None:
    """One of several that have nothing else."""
    checkpoint(directory)
    content = (directory / "store.db").read_bytes()
    counts = b"\x01\x00" * SEGMENT
    pages = sorted({found.start() // 4096 * 4096 for found in re.finditer(re.escape(counts), content)})
    assert len(pages) > 3
    spoil(directory, pages[len(pages) // 2], bytes(8))


def assert_all_but_a_page_works(rig: Rig) -> None:
    (damage,) = rig.inventory.damages
    assert "table holding was damaged" in damage
    client = rig.client()
    producer = client.producer("orders")
    assert producer.outcomes[producer.send("the last")] == ACCEPTED
    consumer = client.consumer("orders", credit=SEGMENT * SEGMENTS + 2)
    assert (consumer.bodies[0], consumer.bodies[-1]) == ("the first", "the last")
    numbers = consumer.bodies[1:-1]
    assert numbers == sorted(set(numbers))
    lost = SEGMENT * SEGMENTS - len(numbers)
    # Seven of the page, and the one above that leads to the next.
    assert 0 < lost <= 8 * SEGMENT
    assert lost % SEGMENT == 0


def segment_count(rig: Rig) -> int:
    with closing(sqlite3.connect(rig.data / "store.db")) as database:
        (count,) = database.execute("SELECT count(*) FROM segment").fetchone()
    return int(count)


def test_where_marks_are_damaged_every_message_counts_as_seen(rig: Rig) -> None:
    fill(rig)
    rig.client().consumer("orders", credit=1)
    rig.crash(lambda: spoil_page(rig.data, root_of(rig.data, "mark")))
    consumer = rig.client().consumer("orders", credit=COUNT)
    assert len(consumer.received) == COUNT
    assert set(consumer.counts) == {1}
    assert ["table mark was damaged" in damage for damage in rig.inventory.damages] == [True]


def test_large_bodies_whose_holdings_are_damaged_stay(rig: Rig) -> None:
    rig.client().producer("orders").send(LARGE)
    rig.restart()
    rig.crash(lambda: spoil_page(rig.data, root_of(rig.data, "holding")))
    rig.crash_damaged()
    assert len(list((rig.data / "large").iterdir())) == 1


def test_a_page_says_what_cannot_be_read_and_its_number_removes_it(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    rig.crash(lambda: flip_a_byte(rig.data, b"needle 030"))
    operator = Operator(rig)
    (page,) = operator.do("browse", address="orders")
    assert len(page["messages"]) == COUNT
    damaged = [message["number"] for message in page["messages"] if message["subject"] is None]
    whys = {message["why"] for message in page["messages"] if message["subject"] is None}
    assert whys == {"the message cannot be read: its body in the store is damaged or missing"}
    consumer = rig.client().consumer("orders", credit=1000)
    for received in consumer.received:
        received.give(ACCEPTED)
    assert rig.queue("orders").queue.unreadable_count == len(damaged) > 0
    assert operator.count("purge", address="orders", up_to=min(damaged) - 1) == 0
    assert rig.queue("orders").queue.unreadable_count == len(damaged)
    (found,) = operator.do("remove", address="orders", numbers=damaged)
    assert found == {"messages": len(damaged), "missing": [], "locked": []}
    assert rig.queue("orders").queue.unreadable_count == 0

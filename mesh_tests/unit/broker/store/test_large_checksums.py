"""A large body whose file was damaged in any way, anywhere, never reaches a consumer as a whole message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.store.batch import BodyRange, QueueKind, QueueRow, UnreadableBody, WriteBatch
from broker.store.checksums import seal_index
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.unit.broker.rig import Consumer, Rig
from wire.message import Message, encode

LARGE = bytes(range(256)) * 2600
STORED = encode(Message(body=LARGE))
RANGE = 100_000


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def zeros(content: bytes, place: int) -> bytes:
    return content[:place] + bytes(min(512, len(content) - place)) + content[place + 512 :]


def swapped(content: bytes, place: int) -> bytes:
    """As if an older file with the same name and length had come back."""
    return bytes(reversed(content))


def cut(content: bytes, place: int) -> bytes:
    return content[:place]


def longer(content: bytes, place: int) -> bytes:
    return content[:place] + b"more" + content[place:]


DAMAGES = [flip, zeros, swapped, cut, longer]
PLACES = [1000, 262_143, 262_144, 400_000, len(STORED) - 1]


def only_file(data: Path) -> Path:
    (path,) = (data / "large").iterdir()
    return path


def assert_stays_away(rig: Rig, consumer: Consumer) -> None:
    assert consumer.bodies == ["small"]
    assert rig.queue("orders").queue.unreadable_count == 1


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_damaged_large_body_is_given_to_nobody(
    rig: Rig, damage: Callable[[bytes, int], bytes], place: int, is_restarted: bool
) -> None:
    producer = rig.client().producer("orders")
    producer.send(LARGE), producer.send("small")
    path = only_file(rig.data)

    def spoil() -> None:
        path.write_bytes(damage(path.read_bytes(), place))

    if is_restarted:
        rig.crash(spoil)
    else:
        spoil()
    assert_stays_away(rig, rig.client("reads").consumer("orders"))
    rig.store.close()
    assert len(check(rig.data).findings) == 1
    with reading(rig.data) as store:
        assert [stored.is_damaged for stored in stored_messages(store)] == [True, False]
    rig.store = SqliteStore(rig.data)


def test_a_large_body_in_memory_of_a_queue_without_a_row_is_looked_at_too(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer("news.a", credit=0)
    producer = client.producer("news.a")
    producer.send(LARGE), producer.send("small")
    path = only_file(rig.data)
    path.write_bytes(flip(path.read_bytes(), 400_000))
    consumer.link.grant(10)
    rig.run()
    assert consumer.bodies == ["small"]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "data")
    store.load()
    store.commit(
        WriteBatch(
            queues=[QueueRow(1, QueueKind.QUEUE, "orders")],
            messages=[(1, len(STORED), 4, None, None)],
            entries=[(1, 1, 0)],
            pieces=[(1, STORED[:70_000]), (1, STORED[70_000:])],
            sealed=[1],
        )
    )
    return store


def ranges(reader: int) -> list[BodyRange]:
    return [
        BodyRange(1, True, offset, min(RANGE, len(STORED) - offset), reader) for offset in range(0, len(STORED), RANGE)
    ]


def test_readers_that_take_turns_are_each_given_all_of_a_sound_body(store: SqliteStore) -> None:
    came: dict[int, bytes] = {1: b"", 2: b""}
    # The second begins when the first is half through, and the first reads its first range twice.
    turns = [ranges(1)[0], *ranges(1)[:3]]
    for one, other in zip([*ranges(1)[3:], None, None, None], ranges(2), strict=False):
        turns += [wanted for wanted in (one, other) if wanted is not None]
    for wanted in turns[1:]:
        (found,) = store.read([wanted])
        assert isinstance(found, bytes)
        came[wanted.reader] += found
    assert came == {1: STORED, 2: STORED}
    store.close()


def test_a_reader_that_begins_in_the_middle_is_not_given_the_end_of_a_damaged_body(
    store: SqliteStore, tmp_path: Path
) -> None:
    path = only_file(tmp_path / "data")
    path.write_bytes(flip(path.read_bytes(), 5))
    found = [store.read([wanted])[0] for wanted in ranges(7)[3:]]
    assert [isinstance(one, UnreadableBody) for one in found] == [False] * (len(found) - 1) + [True]
    store.close()


def test_a_body_that_was_stored_before_there_were_checksums_is_given_out_and_shown_as_unchecked(
    store: SqliteStore, tmp_path: Path
) -> None:
    ((index,),) = store._writer.execute("SELECT message_index FROM segment").fetchall()
    old = seal_index(1, index[:16] + bytes(8))
    store._writer.execute("UPDATE segment SET message_index = ?", (old,))
    assert [store.read([wanted])[0] for wanted in ranges(1)][-1] == STORED[len(STORED) // RANGE * RANGE :]
    store.close()
    report = check(tmp_path / "data")
    assert (report.findings, report.unchecked) == ([], 1)

"""Room that a store keeps for itself: when is it there, and who gets it?"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import namedtuple
from pathlib import Path

import pytest

import broker.store.sqlite
from broker.store.batch import BodyRange, QueueKind, QueueRow, StoreError, WriteBatch
from broker.store.copying import back_up
from broker.store.failpoints import StoreFailpoint
from broker.store.log_index import INDEX_BYTES
from broker.store.reserve import PIECES, RESERVE_BYTES, Reserve, is_full
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.inventories import held_by
from wire.message import Message, encode

ORDERS = QueueRow(1, QueueKind.QUEUE, "orders")
GIB = 1 << 30
TOTAL = 64 << 20
"""Of a file system, so that the reserve is 4 MiB."""
SIZE = TOTAL // 16
NO_ROOM = OSError(errno.ENOSPC, "no space left on device")


@pytest.fixture
def reserve(tmp_path: Path) -> Reserve:
    reserve = Reserve(tmp_path / "reserve")
    reserve.make(TOTAL, TOTAL)
    assert reserve.size_bytes == SIZE
    return reserve


def test_it_takes_room_and_does_not_only_say_so(tmp_path: Path, reserve: Reserve) -> None:
    found = (tmp_path / "reserve").stat()
    assert found.st_blocks * 512 >= found.st_size == SIZE
    assert Reserve(tmp_path / "reserve").size_bytes == SIZE


def test_a_copy_with_holes_is_none_and_is_filled(tmp_path: Path) -> None:
    (tmp_path / "reserve").touch()
    os.truncate(tmp_path / "reserve", SIZE)
    reserve = Reserve(tmp_path / "reserve")
    assert reserve.size_bytes == 0
    reserve.make(TOTAL, TOTAL)
    assert reserve.size_bytes == SIZE


def test_it_is_64_mib_of_a_large_disk(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve")
    reserve.make(1000 * GIB, 3 * RESERVE_BYTES)
    assert reserve.size_bytes == RESERVE_BYTES == 64 << 20


def test_it_is_made_only_where_there_is_plenty_of_room(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve")
    reserve.make(TOTAL, 3 * SIZE - 1)
    assert (reserve.size_bytes, list(tmp_path.iterdir())) == (0, [])


def test_a_disk_that_has_less_than_it_says_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, offset: int, size: int) -> None:
        raise NO_ROOM

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    reserve = Reserve(tmp_path / "reserve")
    reserve.make(TOTAL, TOTAL)
    assert (reserve.size_bytes, list(tmp_path.iterdir())) == (0, [])


def test_a_file_system_that_cannot_allocate_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, offset: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    reserve = Reserve(tmp_path / "reserve")
    reserve.make(TOTAL, TOTAL)
    assert reserve.size_bytes == (tmp_path / "reserve").stat().st_size == SIZE


def test_it_is_given_up_piece_by_piece_until_the_work_is_done(tmp_path: Path, reserve: Reserve) -> None:
    sizes = []

    def work() -> str:
        sizes.append(reserve.size_bytes)
        if len(sizes) < 3:
            raise NO_ROOM
        return "done"

    assert reserve.lend_to(work) == "done"
    assert sizes == [SIZE, SIZE - SIZE // PIECES, SIZE - 2 * SIZE // PIECES]
    assert (tmp_path / "reserve").stat().st_size == sizes[-1]


def test_what_there_is_no_room_for_even_so_fails(tmp_path: Path, reserve: Reserve) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        raise NO_ROOM

    with pytest.raises(OSError, match="no space left"):
        reserve.lend_to(work)
    assert (len(tries), list(tmp_path.iterdir())) == (PIECES + 1, [])


@pytest.mark.parametrize(("free_bytes", "kept"), [(1 << 20, SIZE), (1000, SIZE - SIZE // PIECES)])
def test_a_piece_is_given_up_for_who_would_not_be_told(reserve: Reserve, free_bytes: int, kept: int) -> None:
    reserve.keep_free(free_bytes)
    assert reserve.size_bytes == kept


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "i/o error"), StoreError("cannot sync"), sqlite3.OperationalError("disk I/O error")]
)
def test_what_is_no_want_of_room_is_never_done_again(reserve: Reserve, error: Exception) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        raise error

    with pytest.raises(type(error)):
        reserve.lend_to(work)
    assert (len(tries), reserve.size_bytes) == (1, SIZE)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FULL", True),
        ("IOERR_SHMSIZE", True),
        ("IOERR_FSYNC", False),
        ("IOERR_DIR_FSYNC", False),
        ("IOERR_WRITE", False),
    ],
)
def test_of_what_sqlite_says_only_want_of_room_is_that(name: str, expected: bool) -> None:
    error = sqlite3.OperationalError(name)
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
    assert is_full(error) == expected


# In the store

Found = namedtuple("Found", "f_blocks f_bavail f_frsize")


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """That the store makes: first its writer's."""
    made = []
    connect = broker.store.sqlite._connect

    def remember(path: Path) -> sqlite3.Connection:
        made.append(connect(path))
        return made[-1]

    monkeypatch.setattr(broker.store.sqlite, "_connect", remember)
    monkeypatch.setattr(os, "statvfs", lambda path: Found(TOTAL, TOTAL, 1))
    return made


def opened(directory: Path) -> SqliteStore:
    store = SqliteStore(directory)
    store.load()
    assert store.look().reserve_bytes == SIZE
    return store


def body_of(message_id: int) -> bytes:
    return encode(Message(body=bytes([message_id]) * 9000))


def batch_of(*message_ids: int) -> WriteBatch:
    return WriteBatch(
        queues=[ORDERS] if 1 in message_ids else [],
        messages=[(message_id, len(body_of(message_id)), 4, None, body_of(message_id)) for message_id in message_ids],
        entries=[(1, message_id, 0) for message_id in message_ids],
    )


def limit_pages(connection: sqlite3.Connection) -> None:
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={count}")


def test_a_commit_that_meets_the_end_of_the_disk_is_made_again_and_whole(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.commit(batch_of(1, 2))
    limit_pages(connections[0])
    give_up = Reserve.give_up

    def make_room(reserve: Reserve, piece_bytes: int) -> bool:
        connections[0].execute("PRAGMA max_page_count=1000000")
        return give_up(reserve, piece_bytes)

    monkeypatch.setattr(Reserve, "give_up", make_room)
    batch = batch_of(3, 4)
    batch.archived, batch.dropped_messages = {1: [1]}, [1]
    store.commit(batch)
    store.commit(WriteBatch(archived={1: [2]}, dropped_messages=[2]))
    store.close()
    assert (tmp_path / "reserve").stat().st_size == SIZE - SIZE // PIECES
    assert check(tmp_path).findings == []
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).entries == [(1, 3, 0), (1, 4, 0)]
    assert store.read([BodyRange(3, False, 0, 10_000)]) == [body_of(3)]
    store.close()


def test_what_is_mapped_into_memory_has_its_place_on_the_disk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    assert (tmp_path / "store.db-shm").stat().st_blocks * 512 >= INDEX_BYTES
    store.close()


def test_a_start_that_meets_the_end_of_the_disk_begins_anew(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.commit(batch_of(1, 2))
    store.commit(WriteBatch(marks={(1, 4): 1}))
    store.close()
    tries = []

    def meet_the_end(failpoint: StoreFailpoint) -> None:
        if failpoint is StoreFailpoint.RECOVERY_WRITTEN:
            tries.append(1)
            if len(tries) == 1:
                raise NO_ROOM

    store = SqliteStore(tmp_path)
    monkeypatch.setattr(store, "_passing", meet_the_end)
    assert held_by(store.load()).entries == [(1, 1, 1), (1, 2, 0)]
    assert len(tries) == 2
    store.commit(WriteBatch(archived={1: [1, 2]}, dropped_messages=[1, 2]))
    store.commit(WriteBatch(unlinked=[3]))
    store.close()
    report = check(tmp_path)
    assert (report.findings, report.messages) == ([], 0)


def test_a_commit_without_room_even_so_fails_and_leaves_what_was_there(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    store = opened(tmp_path)
    store.commit(batch_of(1))
    limit_pages(connections[0])
    with pytest.raises(StoreError, match=r"cannot write to the store in .*: database or disk is full"):
        store.commit(batch_of(2))
    store.close()
    assert not (tmp_path / "reserve").exists()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).entries == [(1, 1, 0)]
    store.close()


def test_a_large_body_that_meets_the_end_of_the_disk_goes_on_where_it_was(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    write, refusals = os.write, [NO_ROOM, None, NO_ROOM, NO_ROOM]

    def write_some(handle: int, data: bytes) -> int:
        refusal = refusals.pop(0) if refusals else None
        if refusal is not None:
            raise refusal
        return write(handle, data[:2])

    monkeypatch.setattr(os, "write", write_some)
    store.commit(
        WriteBatch(
            queues=[ORDERS],
            messages=[(1, 5, 4, None, None)],
            entries=[(1, 1, 0)],
            pieces=[(1, b"hel"), (1, b"lo")],
            sealed=[1],
        )
    )
    assert store.read([BodyRange(1, True, 0, 5)]) == [b"hello"]
    assert store.look().reserve_bytes == SIZE, "made again, where there is room"
    store.close()


def test_a_sync_that_fails_for_want_of_room_is_not_tried_again(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tries = opened(tmp_path), []

    def refuse(handle: int) -> None:
        tries.append(handle)
        raise NO_ROOM

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreError, match="cannot sync"):
        store.commit(WriteBatch(pieces=[(1, b"hello")], sealed=[1]))
    assert len(tries) == 1
    monkeypatch.undo()
    store.close()
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_what_deleted_messages_leave_in_the_tables_is_told(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    store = opened(tmp_path)
    store.commit(batch_of(*range(1, 101)))
    assert store.look().reusable_bytes == 0
    store.commit(WriteBatch(archived={1: list(range(1, 101))}, dropped_messages=list(range(1, 101))))
    assert store.look().reusable_bytes >= 100 * 9000
    store.close()


def test_the_reserve_is_no_leftover_and_in_no_backup(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    store = opened(tmp_path / "data")
    store.commit(batch_of(1))
    store.close()
    report = check(tmp_path / "data")
    assert (report.findings, report.leftovers) == ([], 0)
    back_up(tmp_path / "data", tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["anchor", "large", "store.db"]

import os
import shutil
import sqlite3
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.store.batch import BodyRange, QueueKind, QueueRow, StoreError, UnreadableBody, WriteBatch
from broker.store.cause import Cause, Reason
from broker.store.schema import FORMAT_VERSION
from broker.store.sqlite import SqliteStore
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.store.format_1 import store_of_format_1
from mesh_tests.unit.broker.store.format_2 import as_format_2
from mesh_tests.unit.broker.store.format_3 import as_format_3
from mesh_tests.unit.broker.store.format_4 import as_format_4

ORDERS = QueueRow(1, QueueKind.QUEUE, "orders")


def _with_one_message(directory: Path, *, is_large: bool = False) -> SqliteStore:
    store = SqliteStore(directory)
    store.load()
    batch = WriteBatch(queues=[ORDERS], messages=[(7, 5, 6, None, None if is_large else b"hello")], entries=[(1, 7, 0)])
    if is_large:
        batch.pieces = [(7, b"hel"), (7, b"lo")]
        batch.sealed = [7]
    store.commit(batch)
    return store


def test_what_was_committed_is_there_after_reopening(tmp_path: Path) -> None:
    _with_one_message(tmp_path / "data").close()
    store = SqliteStore(tmp_path / "data")
    inventory = held_by(store.load())
    assert inventory.queues == [ORDERS]
    assert inventory.messages == [(7, 5, 6, None, False)]
    assert inventory.entries == [(1, 7, 0)]
    assert store.read([BodyRange(7, False, 0, 5)]) == [b"hello"]
    store.close()


def test_the_data_directory_is_for_its_owner_only(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "data").close()
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data" / "store.db").stat().st_mode) == 0o600


def test_a_second_user_of_the_directory_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        SqliteStore(tmp_path)
    store.close()
    SqliteStore(tmp_path).close()


def test_an_sqlite_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreError, match=r"expected 3\.37\.0 or later"):
        SqliteStore(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_store_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute(f"PRAGMA user_version={FORMAT_VERSION + 1}")
    database.close()
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(StoreError, match=f"format {FORMAT_VERSION + 1}"):
        SqliteStore(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == before


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(StoreError, match="not the store of a broker"):
        SqliteStore(tmp_path)


def test_messages_below_the_seen_mark_are_counted_when_the_store_was_not_closed_cleanly(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    store.commit(WriteBatch(messages=[(8, 1, 6, None, b"x")], entries=[(1, 8, 0)], marks={(1, 6): 7, (1, 4): 9}))
    store.close()
    for _ in range(2):
        store = SqliteStore(tmp_path)
        assert held_by(store.load()).entries == [(1, 7, 1), (1, 8, 0)]
        store.close()


def test_a_large_body_is_a_file_and_read_in_pieces(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path, is_large=True)
    assert store.read([BodyRange(7, True, 0, 2), BodyRange(7, True, 2, 3)]) == [b"he", b"llo"]
    store.commit(WriteBatch(archived={1: [7]}, dropped_messages=[7], unlinked=[7]))
    assert list((tmp_path / "large").iterdir()) == []
    store.close()


def test_a_large_body_without_its_row_is_deleted_on_opening(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.load()
    store.commit(WriteBatch(pieces=[(3, b"half of it")]))
    store.close()
    store = SqliteStore(tmp_path)
    store.load()
    assert list((tmp_path / "large").iterdir()) == []
    store.close()


def test_a_large_body_that_went_missing_is_said(tmp_path: Path) -> None:
    _with_one_message(tmp_path, is_large=True).close()
    (tmp_path / "large" / "7").unlink()
    store = SqliteStore(tmp_path)
    inventory = held_by(store.load())
    assert inventory.entries == [(1, 7, 0)]
    assert inventory.damages == [f"message 7 is incomplete in {tmp_path / 'large'}"]
    (found,) = store.read([BodyRange(7, True, 0, 5)])
    assert isinstance(found, UnreadableBody)
    store.close()


def test_a_message_without_entries_is_forgotten(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    store.commit(WriteBatch(dropped_queues=[1]))
    store.close()
    store = SqliteStore(tmp_path)
    inventory = held_by(store.load())
    assert (inventory.queues, inventory.messages, inventory.entries) == ([], [], [])
    store.close()


def test_a_store_of_the_format_before_is_taken_over_whole(tmp_path: Path) -> None:
    count = 700
    store_of_format_1(tmp_path, count)
    ids = [message_id for message_id in range(1, count + 1) if message_id not in (300, 301)]
    entries = {(1, message_id, message_id % 3 + (message_id <= 2)) for message_id in ids}
    entries |= {(2, message_id, message_id % 3) for message_id in ids if message_id % 2 == 0}
    for _ in range(2):
        store = SqliteStore(tmp_path)
        inventory = held_by(store.load())
        assert [(queue.queue_id, queue.address) for queue in inventory.queues] == [(1, "orders"), (2, "news.#")]
        assert [message[0] for message in inventory.messages] == ids
        assert inventory.messages[6] == (7, 6, 4, 1_700_000_000_000, False)
        assert inventory.messages[-1] == (count, 5, 4, None, True)
        assert set(inventory.entries) == entries
        wanted = [BodyRange(message_id, False, 0, 10) for message_id in (299, 302, 1, 699)]
        assert store.read(wanted) == [b"body 299", b"body 302", b"body 1", b"body 699"]
        store.close()


def test_a_store_of_format_2_has_its_mark_and_the_usual_priority(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.load()
    messages = [(number, 1, 4, None, b"x") for number in (1, 2, 3)]
    entries = [(1, number, 0) for number in (1, 2, 3)]
    store.commit(WriteBatch(queues=[ORDERS], messages=list(messages), entries=list(entries), marks={(1, 4): 2}))
    store.close()
    as_format_2(tmp_path)
    for _ in range(2):
        store = SqliteStore(tmp_path)
        inventory = held_by(store.load())
        assert inventory.entries == [(1, 1, 1), (1, 2, 1), (1, 3, 0)]
        assert {priority for _, _, priority, *_ in inventory.messages} == {4}
        store.close()


def test_a_store_of_format_3_goes_on_with_checksums_for_what_is_new(tmp_path: Path) -> None:
    _with_one_message(tmp_path).close()
    as_format_3(tmp_path)
    store = SqliteStore(tmp_path)
    store.load()
    store.commit(WriteBatch(messages=[(8, 5, 4, None, b"world")], entries=[(1, 8, 0)]))
    store.close()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).entries == [(1, 7, 0), (1, 8, 0)]
    assert store.read([BodyRange(7, False, 0, 5), BodyRange(8, False, 0, 5)]) == [b"hello", b"world"]
    store.close()
    database = sqlite3.connect(tmp_path / "store.db")
    sums = [index[20:24] != bytes(4) for (index,) in database.execute("SELECT message_index FROM segment")]
    assert sums == [False, True]
    assert database.execute("SELECT checksum IS NULL FROM holding").fetchall() == [(1,), (0,)]
    database.close()


def test_a_store_of_format_4_has_queues_without_owners(tmp_path: Path) -> None:
    _with_one_message(tmp_path).close()
    as_format_4(tmp_path)
    store = SqliteStore(tmp_path)
    assert [(row.owner, row.used_at_s) for row in held_by(store.load()).queues] == [(None, 0)]
    store.commit(WriteBatch(queues=[replace(ORDERS, owner="alice", used_at_s=1_700_000_000)]))
    store.close()
    store = SqliteStore(tmp_path)
    inventory = held_by(store.load())
    assert inventory.queues == [replace(ORDERS, owner="alice", used_at_s=1_700_000_000)]
    assert inventory.entries == [(1, 7, 0)]
    store.close()


def test_a_store_of_format_6_is_one_of_today(tmp_path: Path) -> None:
    _with_one_message(tmp_path).close()
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("PRAGMA user_version=6")
    database.close()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).entries == [(1, 7, 0)]
    store.close()
    database = sqlite3.connect(tmp_path / "store.db")
    assert database.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)
    database.close()


def test_a_cause_is_there_until_its_message_goes(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    cause = Cause(Reason.REJECTED, "orders", 3, 1_700_000_000_000)
    dead = QueueRow(2, QueueKind.QUEUE, "dead")
    store.commit(WriteBatch(queues=[dead], entries=[(2, 7, 0)], causes=[(2, 7, cause)], archived={1: [7]}))
    store.close()
    store = SqliteStore(tmp_path)
    inventory = held_by(store.load())
    assert (inventory.entries, inventory.causes) == ([(2, 7, 0)], {(2, 7): cause})
    store.commit(WriteBatch(archived={2: [7]}, forgotten_causes={2: [7]}, dropped_messages=[7]))
    store.close()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).causes == {}
    store.close()


def test_a_queue_that_is_dropped_takes_its_causes_annotations_and_marks_along(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    cause = Cause(Reason.FULL, "other", 0, 0)
    store.commit(WriteBatch(causes=[(1, 7, cause)], marks={(1, 9): 7}, annotations={(1, 7): b"section"}))
    store.commit(WriteBatch(annotations={(1, 7): b"longer section"}, dropped_queues=[1], dropped_messages=[7]))
    store.close()
    database = sqlite3.connect(tmp_path / "store.db")
    counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("cause", "annotation", "mark")]
    assert counts == [(0,)] * 3
    database.close()


def test_annotations_of_consumers_are_there_until_their_message_goes(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    store.commit(WriteBatch(annotations={(1, 7): b"first"}))
    store.commit(WriteBatch(annotations={(1, 7): b"second"}))
    store.close()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).annotations == {(1, 7): b"second"}
    store.commit(WriteBatch(archived={1: [7]}, annotations={(1, 7): None}, dropped_messages=[7]))
    store.close()
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).annotations == {}
    store.close()


def test_a_store_that_could_not_be_taken_over_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_of_format_1(tmp_path, 10)

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(SqliteStore, "_write_messages", fail)
    with pytest.raises(StoreError, match="disk full"):
        SqliteStore(tmp_path)
    monkeypatch.undo()
    store = SqliteStore(tmp_path)
    assert len(held_by(store.load()).messages) == 10
    store.close()


def test_a_body_that_its_segment_lacks_is_unreadable_and_no_other_body(tmp_path: Path) -> None:
    store = _with_one_message(tmp_path)
    for message_id in (6, 8):
        assert store.read([BodyRange(message_id, False, 0, 5)]) == [
            UnreadableBody(message_id, "no segment has the message")
        ]
    store.close()


def priority_of(message_id: int) -> int:
    return message_id * 7 % 10


class StoreWalk(RuleBasedStateMachine):
    """Random batches, clean closes and kills; what is loaded is what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.life = 0
        self.store = SqliteStore(self.root / "0")
        self.store.load()
        self.store.commit(WriteBatch(queues=[ORDERS, QueueRow(2, QueueKind.QUEUE, "other")]))
        self.entries: dict[tuple[int, int], int] = {}
        self.bodies: dict[int, tuple[bytes, bool]] = {}
        self.marks: dict[tuple[int, int], int] = {}
        self.next_id = 1

    @rule(count=st.integers(1, 450), is_large=st.booleans(), queue_ids=st.sampled_from([[1], [2], [1, 2]]))
    def accept(self, count: int, is_large: bool, queue_ids: list[int]) -> None:
        batch = WriteBatch()
        for _ in range(3 if is_large else count):
            message_id, self.next_id = self.next_id, self.next_id + 1
            body = f"body {message_id}".encode()
            batch.messages.append((message_id, len(body), priority_of(message_id), None, None if is_large else body))
            if is_large:
                batch.pieces += [(message_id, body[:3]), (message_id, body[3:])]
                batch.sealed.append(message_id)
            self.bodies[message_id] = (body, is_large)
            for queue_id in queue_ids:
                batch.entries.append((queue_id, message_id, 0))
                self.entries[queue_id, message_id] = 0
        self.store.commit(batch)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        batch = WriteBatch()
        start = data.draw(st.integers(0, len(self.entries) - 1))
        for queue_id, message_id in list(self.entries)[start : start + 700]:
            del self.entries[queue_id, message_id]
            batch.archived.setdefault(queue_id, []).append(message_id)
            if (3 - queue_id, message_id) not in self.entries:
                _, is_large = self.bodies.pop(message_id)
                batch.dropped_messages.append(message_id)
                batch.unlinked += [message_id] if is_large else []
        self.store.commit(batch)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def recount(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(list(self.entries)))
        self.entries[key] += 1
        self.store.commit(WriteBatch(counts={key: self.entries[key]}))

    @rule(queue_id=st.sampled_from([1, 2]), priority=st.integers(0, 9), ahead=st.integers(0, 10))
    def raise_mark(self, queue_id: int, priority: int, ahead: int) -> None:
        self.marks[queue_id, priority] = self.next_id + ahead
        self.store.commit(WriteBatch(marks={(queue_id, priority): self.next_id + ahead}))

    @rule()
    def close(self) -> None:
        self.store.commit(WriteBatch(marks=dict.fromkeys(self.marks, 0)))
        self.marks = {}
        self.store.close()
        self.reopen()

    @rule()
    def kill(self) -> None:
        before = self.root / str(self.life)
        self.life += 1
        shutil.copytree(before, self.root / str(self.life))
        self.store.close()
        self.reopen()

    def reopen(self) -> None:
        for queue_id, message_id in self.entries:
            mark = self.marks.get((queue_id, priority_of(message_id)), 0)
            self.entries[queue_id, message_id] += message_id <= mark
        self.marks = {}
        self.store = SqliteStore(self.root / str(self.life))
        inventory = held_by(self.store.load())
        assert {(queue_id, message_id): count for queue_id, message_id, count in inventory.entries} == self.entries
        assert {message_id: (priority, is_large) for message_id, _, priority, _, is_large in inventory.messages} == {
            message_id: (priority_of(message_id), is_large) for message_id, (_, is_large) in self.bodies.items()
        }

    @invariant()
    def bodies_can_be_read(self) -> None:
        some = list(self.bodies.items())[-20:]
        ranges = [BodyRange(message_id, is_large, 0, len(body)) for message_id, (body, is_large) in some]
        assert self.store.read(ranges) == [body for _, (body, _) in some]

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)


StoreWalk.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestStoreWalk = StoreWalk.TestCase

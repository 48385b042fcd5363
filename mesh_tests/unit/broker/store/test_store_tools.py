"""Is what is wrong with a store found, is nothing changed by looking, and is a copy as good as the store?"""

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.store.batch import BodyRange, StoreError, WriteBatch
from broker.store.cause import Cause, Reason
from broker.store.check_report import MOST_FINDINGS, CheckReport
from broker.store.compaction import compact
from broker.store.copying import back_up, restore
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from broker.store.schema import FORMAT_VERSION
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.unit.broker.store.store_of_orders import COUNT, LARGE_BYTES, LARGE_ID, body_of, write_store

CRASH = """
import os, pathlib, sys
from mesh_tests.unit.broker.store.store_of_orders import write_store
write_store(pathlib.Path(sys.argv[1]))
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_store(tmp_path / "data").close()
    return tmp_path / "data"


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """All of it is in the log still."""
    subprocess.run([sys.executable, "-c", CRASH, str(tmp_path / "data")], check=False)
    assert (tmp_path / "data" / "store.db-wal").stat().st_size > 0
    return tmp_path / "data"


def state_of(directory: Path) -> dict[str, tuple[str, int]]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def totals(report: CheckReport) -> list[tuple[str, int, int]]:
    return [(queue.row.address, queue.messages, queue.delivered) for queue in report.queues.values()]


def query(directory: Path, *statements: str) -> None:
    database = sqlite3.connect(directory / "store.db", isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


ALL_THERE = [("orders", COUNT - 10 + 1, 1), ("news.#", COUNT // 2 - 5, 0)]


# Check
def test_a_sound_store_is_counted(directory: Path) -> None:
    report = check(directory)
    assert report.findings == []
    assert totals(report) == ALL_THERE
    assert report.messages == COUNT - 10 + 1
    assert report.size_bytes == sum(len(body_of(n)) for n in range(1, COUNT + 1) if not 10 <= n < 20) + LARGE_BYTES
    assert report.unneeded_bytes == sum(len(body_of(number)) for number in range(10, 20))
    assert report.leftovers == 0


def test_what_is_in_the_log_only_counts_and_nothing_is_written(crashed: Path) -> None:
    before = state_of(crashed)
    report = check(crashed)
    assert totals(report) == ALL_THERE
    assert state_of(crashed) == before


def test_a_copy_without_its_shared_memory_is_read_with_its_log(crashed: Path) -> None:
    (crashed / "store.db-shm").unlink()
    before = state_of(crashed)
    assert totals(check(crashed)) == ALL_THERE
    assert state_of(crashed) == before


def test_a_store_that_is_used_is_refused_and_none_uses_it_meanwhile(directory: Path) -> None:
    store = SqliteStore(directory)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}: stop the broker first"):
        check(directory)
    store.close()
    with reading(directory), pytest.raises(StoreError, match="in use"):
        SqliteStore(directory)
    SqliteStore(directory).close()


@pytest.mark.parametrize(
    ("version", "what"), [(FORMAT_VERSION + 1, "use the newer amqpmesh"), (1, "upgrades the store when it starts")]
)
def test_a_store_of_another_format_is_refused(directory: Path, version: int, what: str) -> None:
    query(directory, f"PRAGMA user_version={version}")
    with pytest.raises(StoreError, match=what):
        check(directory)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store in"):
        check(tmp_path)
    sqlite3.connect(tmp_path / "store.db").execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(StoreError, match="a database, but not the store of a broker"):
        check(tmp_path)
    (tmp_path / "store.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="cannot read"):
        check(tmp_path)


def lose_large(directory: Path) -> None:
    (directory / "large" / str(LARGE_ID)).unlink()


def cut_large(directory: Path) -> None:
    (directory / "large" / str(LARGE_ID)).write_bytes(b"short")


def spoil_a_page(directory: Path) -> None:
    """One of the bodies."""
    with (directory / "store.db").open("r+b") as file:
        place = file.read().index(body_of(7))
        file.seek(place)
        file.write(b"\xff" * len(body_of(7)))


def spoil_the_tree(directory: Path) -> None:
    """A page of the table of queues."""
    with (directory / "store.db").open("r+b") as file:
        place = file.read().index(b"subscriptionnews.#")
        file.seek(place // 4096 * 4096)
        file.write(b"\xff" * 64)


def sql(*statements: str) -> Callable[[Path], None]:
    return lambda directory: query(directory, *statements)


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lose_large, r"message 301: large/301 is missing, expected 100,000 bytes"),
        (cut_large, r"message 301: large/301 has 5 bytes, expected 100,000"),
        (spoil_a_page, r"message 7: its \d+ bytes do not match their checksum"),
        (spoil_the_tree, r"store.db: .*"),
        (
            sql("UPDATE segment SET bodies = x'00' WHERE segment_id = 1"),
            r"segment 1: the bodies have 1 bytes, expected \d+ by its index",
        ),
        (
            sql("UPDATE segment SET message_index = x'00'"),
            r"segment 1: the index has 1 bytes, expected 16 for each message",
        ),
        (
            sql("UPDATE segment SET segment_id = 200 WHERE segment_id = 257"),
            r"segment 200: begins before .* ends, at 257",
        ),
        (sql("UPDATE holding SET counts = x'0100'"), r"queue 1: 2 bytes of counts in segment 1, expected 512"),
        (sql("DELETE FROM segment WHERE segment_id = 1"), r"queue 2: segment 1 is lost, with messages of this queue"),
        (
            sql("DELETE FROM segment WHERE segment_id = 257"),
            r"queue 1: segment 257 is lost, with messages of this queue",
        ),
        (
            sql(
                "INSERT INTO queue SELECT 9, kind, address, container_id, link_name, owner, used_at_s FROM queue "
                "WHERE queue_id = 2"
            ),
            r"queue 9: another row has the same subscription 'news.#'",
        ),
        (
            sql("INSERT INTO cause VALUES (1, 10, 'full', 'other', 0, 0)"),
            r"queue 1: it has no message 10, but a dead-letter cause for it",
        ),
        (
            sql("INSERT INTO cause VALUES (1, 9, 'whim', 'other', 0, 0)"),
            r"queue 1: the dead-letter cause of message 9 .*'whim'.*",
        ),
        (
            sql("INSERT INTO annotation VALUES (1, 10, x'00', 3523407757)"),
            r"queue 1: it has no message 10, but annotations for it",
        ),
        (
            sql("INSERT INTO annotation VALUES (1, 9, x'00', 1)"),
            r"queue 1: the annotations of message 9 cannot be read: the annotations do not match their checksum",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(directory: Path, spoil: Callable[[Path], None], finding: str) -> None:
    spoil(directory)
    report = check(directory)
    assert not report.is_sound
    assert any(re.fullmatch(finding, found.split("\n")[0]) for found in report.findings), report.findings


def test_what_the_next_start_clears_away_is_no_fault(directory: Path) -> None:
    (directory / "large" / "999").write_bytes(b"of an upload that was cut short")
    query(directory, "DELETE FROM queue WHERE queue_id = 2")
    report = check(directory)
    assert report.findings == []
    assert report.leftovers == 1 + 2
    SqliteStore(directory).load()
    assert not (directory / "large" / "999").exists()


def test_of_very_much_that_is_wrong_the_rest_is_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.load()
    ids = range(1, MOST_FINDINGS + 50)
    store.commit(WriteBatch(messages=[(number, 2, 4, None, b"no") for number in ids], entries=[(1, n, 0) for n in ids]))
    store.close()
    query(tmp_path, "INSERT INTO queue VALUES (1, 'queue', 'orders', '', '', NULL, 0)")
    report = check(tmp_path)
    assert len(report.findings) == MOST_FINDINGS
    assert report.findings_left_out == len(ids) - MOST_FINDINGS


# Dump
def test_a_dump_has_every_message_of_each_queue_in_order(directory: Path) -> None:
    with reading(directory) as store:
        orders = list(stored_messages(store, "orders"))
        assert [one.message_id for one in orders] == [*range(1, 10), *range(20, LARGE_ID + 1)]
        assert [one.body for one in orders[:-1]] == [body_of(one.message_id) for one in orders[:-1]]
        assert orders[-1].body == directory / "large" / str(LARGE_ID)
        assert [one.message_id for one in orders if one.delivery_count] == [3]
        assert [one.message_id for one in orders if one.expires_at_ms] == [5]
        assert len(list(stored_messages(store))) == len(orders) + COUNT // 2 - 5


def test_a_dump_says_what_brought_a_message_to_its_queue(directory: Path) -> None:
    query(directory, "INSERT INTO cause VALUES (1, 9, 'expired', 'other', 2, 5)")
    assert check(directory).findings == []
    with reading(directory) as store:
        causes = {one.message_id: one.cause for one in stored_messages(store, "orders") if one.cause}
    assert causes == {9: Cause(Reason.EXPIRED, "other", 2, 5)}


# Compact
def test_compacting_leaves_what_is_needed_and_nothing_else(directory: Path) -> None:
    store = SqliteStore(directory)
    store.load()
    most = [number for number in range(20, LARGE_ID) if number != 200]
    news = [number for number in most if number % 2 == 0]
    store.commit(WriteBatch(archived={1: most, 2: news}, dropped_messages=most))
    store.close()
    before, after = compact(directory)
    assert after < before
    report = check(directory)
    assert report.findings == []
    assert report.unneeded_bytes == 0
    assert totals(report) == [("orders", 9 + 1 + 1, 1), ("news.#", 4 + 1, 0)]
    store = SqliteStore(directory)
    assert store.load().next_message_id == LARGE_ID + 1
    assert store.read([BodyRange(200, False, 0, 100), BodyRange(9, False, 0, 100)]) == [body_of(200), body_of(9)]
    store.close()


def test_a_store_that_is_used_is_not_compacted(directory: Path) -> None:
    store = SqliteStore(directory)
    with pytest.raises(StoreError, match="in use"):
        compact(directory)
    store.close()


# Backup and restore
def test_a_backup_of_a_store_in_use_is_restored_whole(directory: Path, tmp_path: Path) -> None:
    store = SqliteStore(directory)
    store.load()
    assert totals(back_up(directory, tmp_path / "copy")) == ALL_THERE
    store.commit(WriteBatch(archived={1: [1, 2]}))
    store.close()
    shutil.rmtree(directory)
    report = restore(tmp_path / "copy", directory)
    assert report.findings == []
    assert totals(report) == ALL_THERE
    store = SqliteStore(directory)
    store.load()
    assert store.read([BodyRange(LARGE_ID, True, 0, 10), BodyRange(7, False, 0, 100)]) == [bytes(10), body_of(7)]
    store.close()


def test_a_backup_of_a_store_in_use_counts_as_seen_what_a_start_after_a_crash_does(
    directory: Path, tmp_path: Path
) -> None:
    store = SqliteStore(directory)
    store.load()
    high = [(number, len(body_of(number)), 9, None, body_of(number)) for number in (302, 303)]
    store.commit(WriteBatch(messages=high, entries=[(1, 302, 0), (1, 303, 0)]))
    store.commit(WriteBatch(marks={(1, 4): 22, (1, 9): 302, (2, 4): 4}))
    report = back_up(directory, tmp_path / "copy")
    crashed = tmp_path / "crashed"
    shutil.copytree(directory, crashed)
    store.close()
    assert not any(queue.is_mark_open for queue in report.queues.values())
    started = SqliteStore(crashed)
    started.load()
    started.close()
    assert totals(report) == totals(check(crashed)) == [("orders", 293, 13), ("news.#", 145, 2)]
    with reading(crashed) as one, reading(tmp_path / "copy") as other:
        assert list(one.holdings()) == list(other.holdings())


def test_a_large_message_that_is_settled_meanwhile_is_not_in_the_backup(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(directory)
    store.load()

    def settle_then_copy(*paths: Path) -> None:
        store.commit(WriteBatch(archived={1: [LARGE_ID]}, dropped_messages=[LARGE_ID], unlinked=[LARGE_ID]))
        monkeypatch.undo()
        shutil.copyfile(*paths)

    monkeypatch.setattr("broker.store.copying.copyfile", settle_then_copy)
    report = back_up(directory, tmp_path / "copy")
    store.close()
    assert report.findings == []
    assert totals(report) == [("orders", COUNT - 10, 1), ALL_THERE[1]]


@pytest.mark.parametrize("is_used", [True, False])
def test_a_large_message_that_is_lost_is_not_left_out_in_silence(
    directory: Path, tmp_path: Path, *, is_used: bool
) -> None:
    store = SqliteStore(directory)
    store.load()
    if not is_used:
        store.close()
    lose_large(directory)
    with pytest.raises(StoreError, match=r"cannot copy .*large/301, the body of a large message, is missing"):
        back_up(directory, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == [directory]
    if is_used:
        store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE segment SET bodies = substr(bodies, 1, 5000) WHERE segment_id = 1",
        "UPDATE holding SET counts = x'010001' WHERE segment_id = 1 AND queue_id = 2",
    ],
)
def test_what_is_damaged_is_not_compacted(directory: Path, statement: str) -> None:
    query(directory, statement)
    before = state_of(directory)
    with pytest.raises(StoreError, match="is damaged, and was not changed: "):
        compact(directory)
    assert state_of(directory) == before


def test_who_is_refused_by_a_reader_is_not_told_of_a_process_that_is_gone(directory: Path) -> None:
    with reading(directory), pytest.raises(StoreError, match="in use by an `amqpmesh store` command"):
        SqliteStore(directory)


def test_a_backup_goes_over_nothing(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreError, match="already exists"):
        back_up(directory, tmp_path / "copy")
    back_up(directory, tmp_path / "other")
    with pytest.raises(StoreError, match="expected a new or empty directory"):
        restore(tmp_path / "other", directory)
    assert totals(restore(tmp_path / "other", tmp_path / "copy")) == ALL_THERE


def test_what_is_damaged_is_not_restored(directory: Path, tmp_path: Path) -> None:
    back_up(directory, tmp_path / "copy")
    cut_large(tmp_path / "copy")
    with pytest.raises(StoreError, match="is damaged: message 301"):
        restore(tmp_path / "copy", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_of_a_backup_that_fails_nothing_is_left(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("broker.store.copying.sync_directory", fail)
    with pytest.raises(OSError, match="No space left"):
        back_up(directory, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == [directory]

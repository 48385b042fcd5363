"""The page that leads to all others, and those that list the free ones: damaged, they take nothing and nobody away."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from broker.store.batch import StoreError
from broker.store.compaction import compact
from broker.store.first_page import COPY, PAGE_BYTES, REPLACED, FirstPage
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.inventories import held_by
from mesh_tests.seeds import seeds
from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.broker.store.damaging import checkpoint, findings_of, may_lose_its_log, pages_of, spoil, spoil_page
from wire.delivery import ACCEPTED

COUNT = 20
PADDING = "x" * 20_000
BODIES = [f"number {number} {PADDING}" for number in range(COUNT)]
Damage = Callable[[Path], None]

FIRST, COUNTED, CELLS = 32, 36, 103
"""Where in the page stand the first page of the free list, how many there are, and how many tables."""


def fill(rig: Rig) -> None:
    """Messages that stay, and room that others left."""
    producer = rig.client().producer("orders")
    for body in BODIES:
        assert producer.outcomes[producer.send(body)] == ACCEPTED
    passing = rig.client().producer("parked")
    for body in BODIES * 3:
        passing.send(body)
    consumer = rig.client().consumer("parked", credit=100)
    for received in consumer.received:
        received.give(ACCEPTED)
    rig.restart()


def bodies_in(rig: Rig) -> list[str]:
    client = rig.client()
    consumer = client.consumer("orders", credit=100)
    client.vanish()
    rig.run()
    return consumer.bodies


def at(offset: int, by: bytes) -> Damage:
    return lambda directory: spoil(directory, offset, by)


def words(*changes: tuple[bytes, bytes]) -> Damage:
    """Of what the page says of the tables; SQLite has their names, and behind them where they begin."""

    def damage(directory: Path) -> None:
        page = (directory / "store.db").read_bytes()[:PAGE_BYTES]
        for was, becomes in changes:
            assert was in page
            page = page.replace(was, becomes)
        spoil(directory, 0, page)

    return damage


DAMAGES: dict[str, Damage] = {
    "zeros": at(0, bytes(PAGE_BYTES)),
    "noise": at(0, random.Random(1).randbytes(PAGE_BYTES)),
    "no magic": at(0, b"?"),
    "no tables": at(CELLS, bytes(2)),
    "nothing after the header": at(100, bytes(PAGE_BYTES - 100)),
    "another page size": at(16, b"\x20\0"),
    "another application": at(68, b"else"),
    "a newer format": at(60, b"\0\0\0\x09"),
    "another encoding": at(56, b"\0\0\0\3"),
    "an unknown journal": at(18, b"\3\3"),
    "other columns": words((b"message_index", b"message_inner")),
    "another name": words((b"tablemarkmark", b"tablegarkgark")),
    "one place for three": words(
        (b"tablemarkmark\3", b"tablemarkmark\6"), (b"tablecausecause\4", b"tablecausecause\6")
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_copy_takes_the_place_of_a_damaged_first_page(rig: Rig, damage: Damage) -> None:
    fill(rig)
    rig.crash(lambda: damage(rig.data))
    (sentence,) = rig.inventory.damages
    assert (
        sentence == "the first page of store.db was damaged: its copy replaced it, and the damaged page is kept as "
        "first-page.damaged"
    )
    for _ in range(2):
        assert bodies_in(rig) == BODIES
        rig.restart()
        assert rig.inventory.damages == []
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    assert bodies_in(rig) == [*BODIES, "new"]
    assert (rig.data / REPLACED).stat().st_size == PAGE_BYTES


def flip(directory: Path, offset: int, bit: int) -> None:
    checkpoint(directory)
    byte = (directory / "store.db").read_bytes()[offset]
    spoil(directory, offset, bytes([byte ^ 1 << bit]))
    with suppress(StoreError):
        check(directory)


@pytest.mark.parametrize("seed", seeds(4))
def test_no_bit_of_the_first_page_takes_a_message_away(rig: Rig, seed: int) -> None:
    fill(rig)
    chosen = random.Random(seed)
    page = (rig.data / "store.db").read_bytes()[:PAGE_BYTES]
    written = [offset for offset in range(100, PAGE_BYTES) if page[offset]]
    for offset in [*range(seed % 4, 100, 4), *chosen.sample(written, 25)]:
        bit = chosen.randrange(8)
        rig.crash(lambda offset=offset, bit=bit: flip(rig.data, offset, bit))  # type: ignore[misc]
        assert bodies_in(rig) == BODIES, f"byte {offset}, bit {bit}: {rig.inventory.damages}"
    rig.restart()
    assert rig.inventory.damages == []
    assert findings_of(rig) == []


def free_pages(directory: Path) -> tuple[int, int, list[int]]:
    """The page that lists them, the next such page, and the others."""
    checkpoint(directory)
    content = (directory / "store.db").read_bytes()
    (first,) = struct.unpack_from(">I", content, FIRST)
    following, count = struct.unpack_from(">II", content, (first - 1) * PAGE_BYTES)
    assert count > 2
    return first, following, list(struct.unpack_from(f">{count}I", content, (first - 1) * PAGE_BYTES + 8))


def on_the_list(offset: int, number: Callable[[Path], int]) -> Damage:
    def damage(directory: Path) -> None:
        first, *_ = free_pages(directory)
        spoil(directory, (first - 1) * PAGE_BYTES + offset, number(directory).to_bytes(4))

    return damage


def page_count(directory: Path) -> int:
    return (directory / "store.db").stat().st_size // PAGE_BYTES


LISTS: dict[str, Damage] = {
    "leads nowhere": on_the_list(0, lambda directory: page_count(directory) + 1),
    "leads to itself": on_the_list(0, lambda directory: free_pages(directory)[0]),
    "a count too high": on_the_list(4, lambda _: PAGE_BYTES // 4),
    "a count too low": on_the_list(4, lambda _: 1),
    "page 0": on_the_list(8, lambda _: 0),
    "page 1": on_the_list(12, lambda _: 1),
    "beyond the end": on_the_list(8, lambda directory: page_count(directory) + 1),
    "a page twice": on_the_list(8, lambda directory: free_pages(directory)[2][1]),
    "begins nowhere": lambda directory: spoil(directory, FIRST, b"\x7f\xff\xff\xff"),
    "another sum": lambda directory: spoil(directory, COUNTED, b"\0\0\0\1"),
}


@pytest.mark.parametrize("damage", LISTS.values(), ids=LISTS)
def test_a_damaged_list_of_free_pages_is_given_up_until_the_store_is_compacted(rig: Rig, damage: Damage) -> None:
    fill(rig)
    rig.crash(lambda: damage(rig.data))
    (sentence,) = rig.inventory.damages
    assert sentence == "the list of free pages was damaged: `amqpmesh store compact` frees their space"
    producer = rig.client().producer("orders")
    for body in BODIES:
        assert producer.outcomes[producer.send(body)] == ACCEPTED
    rig.restart()
    assert rig.inventory.damages == []
    rig.crash(lambda: compact_what_was_left(rig.data))
    assert bodies_in(rig) == BODIES * 2


def compact_what_was_left(directory: Path) -> None:
    report = check(directory)
    assert (report.findings, report.messages) == ([], 2 * COUNT)
    assert report.unneeded_bytes > 20 * len(PADDING)
    compact(directory)
    assert check(directory).unneeded_bytes == 0


@pytest.mark.parametrize("left", [1000, PAGE_BYTES, 5 * PAGE_BYTES + 7])
def test_of_a_file_that_was_cut_the_rest_is_used(rig: Rig, left: int) -> None:
    fill(rig)
    rig.crash(lambda: (rig.data / "store.db").write_bytes((rig.data / "store.db").read_bytes()[:left]))
    assert rig.inventory.damages
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    rig.crash_damaged()
    assert bodies_in(rig)[-1] == "new"


def copied(rig: Rig, tmp_path: Path) -> Path:
    """What there is when it is killed now."""
    return Path(copytree(rig.data, tmp_path / "killed", ignore=ignore_patterns("lock", "*-shm")))


@pytest.mark.parametrize("damage", ["zeros", "no magic", "no tables"])
def test_a_first_page_that_is_damaged_beside_a_log_is_mended_too(rig: Rig, tmp_path: Path, damage: str) -> None:
    fill(rig)
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("in the log")] == ACCEPTED
    killed = copied(rig, tmp_path)
    assert (killed / "store.db-wal").stat().st_size
    spoil(killed, *{"zeros": (0, bytes(PAGE_BYTES)), "no magic": (0, b"?"), "no tables": (CELLS, bytes(2))}[damage])
    store = SqliteStore(killed)
    assert len(held_by(store.load()).messages) == COUNT + 1
    store.close()


def schema_version(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "store.db")) as database:
        (version,) = database.execute("PRAGMA schema_version").fetchone()
    return int(version)


def copied_version(directory: Path) -> int:
    return int.from_bytes((directory / COPY).read_bytes()[40:44])


def test_the_copy_is_of_the_tables_that_there_are(rig: Rig) -> None:
    fill(rig)
    assert copied_version(rig.data) == schema_version(rig.data)
    rig.crash(lambda: spoil_page(rig.data, pages_of(rig.data, "holding")[0]))
    assert "table holding was damaged" in rig.inventory.damages[0]
    assert copied_version(rig.data) == schema_version(rig.data)


def test_of_a_compacted_store_there_is_no_copy_before_the_next_start(rig: Rig) -> None:
    fill(rig)

    def compacted() -> None:
        compact(rig.data)
        assert not (rig.data / COPY).exists()

    rig.crash(compacted)
    assert copied_version(rig.data) == schema_version(rig.data)
    rig.crash(lambda: spoil(rig.data, 0, bytes(PAGE_BYTES)))
    assert bodies_in(rig) == BODIES


@pytest.mark.parametrize("damage", ["zeros", "noise", "no magic", "another application"])
def test_without_a_copy_nothing_is_changed(rig: Rig, tmp_path: Path, damage: str) -> None:
    fill(rig)
    older = copied(rig, tmp_path)
    checkpoint(older)
    (older / COPY).unlink()
    DAMAGES[damage](older)
    before = (older / "store.db").read_bytes()
    with pytest.raises(StoreError, match=r"not a (database|broker)|but not the store of a broker"):
        SqliteStore(older)
    assert (older / "store.db").read_bytes() == before


def flipped(copy: bytes) -> bytes:
    return copy[:1000] + bytes([copy[1000] ^ 1]) + copy[1001:]


@pytest.mark.parametrize("spoiled", [lambda _: b"", lambda copy: copy[:100], flipped], ids=["empty", "cut", "flipped"])
def test_a_copy_that_is_damaged_itself_does_no_harm(rig: Rig, spoiled: Callable[[bytes], bytes]) -> None:
    fill(rig)
    copy = rig.data / COPY
    sound = copy.read_bytes()
    rig.crash(lambda: copy.write_bytes(spoiled(sound)))
    assert rig.inventory.damages == []
    assert bodies_in(rig) == BODIES
    assert copied_version(rig.data) == schema_version(rig.data)


@pytest.mark.parametrize(
    "damage", ["zeros", "noise", "nothing after the header", "another page size", "another encoding"]
)
def test_tools_that_only_read_say_who_mends_it(rig: Rig, tmp_path: Path, damage: str) -> None:
    fill(rig)
    killed = copied(rig, tmp_path)
    checkpoint(killed)
    DAMAGES[damage](killed)
    with pytest.raises(StoreError, match="a broker tries to repair the file when it starts"):
        check(killed)


def test_a_table_that_seems_to_begin_elsewhere_begins_where_it_did(rig: Rig) -> None:
    fill(rig)
    root, *others = pages_of(rig.data, "segment")
    rig.crash(lambda: words((b"tablesegmentsegment%c" % root, b"tablesegmentsegment%c" % others[0]))(rig.data))
    assert len(rig.inventory.damages) == 1
    assert bodies_in(rig) == BODIES


def move_elsewhere(directory: Path, *tables: str, is_dropped: bool) -> None:
    """A sound store with the same schema cookie, whose tables lie in other places."""
    with closing(sqlite3.connect(directory / "store.db", isolation_level=None)) as database:
        (cookie,) = database.execute("PRAGMA schema_version").fetchone()
        for table in tables:
            (create,) = database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
            database.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
            database.execute(create)
            database.execute(f"INSERT INTO {table} SELECT * FROM {table}_before")
            if is_dropped:
                database.execute(f"DROP TABLE {table}_before")
        database.execute(f"PRAGMA schema_version={cookie}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("is_dropped", [True, False], ids=["moved", "twice"])
def test_another_sound_store_in_its_place_is_used_as_it_is(rig: Rig, is_dropped: bool) -> None:
    fill(rig)
    rig.crash(lambda: move_elsewhere(rig.data, "holding", "segment", is_dropped=is_dropped))
    assert rig.inventory.damages == []
    assert bodies_in(rig) == BODIES
    rig.crash(lambda: spoil(rig.data, 0, bytes(PAGE_BYTES)))
    assert bodies_in(rig) == BODIES, "the copy is of what is there now"


def test_a_copy_that_leads_to_no_tables_any_more_is_not_taken(rig: Rig, tmp_path: Path) -> None:
    fill(rig)
    killed = copied(rig, tmp_path)
    may_lose_its_log(killed)
    move_elsewhere(killed, "holding", "segment", is_dropped=True)
    spoil(killed, 0, bytes(PAGE_BYTES))
    before = (killed / "store.db").read_bytes()
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(killed)
    assert (killed / "store.db").read_bytes() == before


def test_of_two_damaged_pages_the_first_is_kept(rig: Rig) -> None:
    fill(rig)
    rig.crash(lambda: spoil(rig.data, 0, b"first"))
    rig.crash(lambda: spoil(rig.data, 0, b"second"))
    assert (rig.data / REPLACED).read_bytes().startswith(b"first")


def test_a_copy_is_kept_whatever_the_schema_cookie(rig: Rig) -> None:
    fill(rig)

    def make_negative() -> None:
        with closing(sqlite3.connect(rig.data / "store.db", isolation_level=None)) as database:
            database.execute("PRAGMA schema_version=-5")

    rig.crash(make_negative)
    assert copied_version(rig.data) == 2**32 - 5


def test_somebody_elses_database_is_left_alone(rig: Rig, tmp_path: Path) -> None:
    fill(rig)
    killed = copied(rig, tmp_path)
    for name in ("store.db", "store.db-wal", "anchor"):
        (killed / name).unlink()
    with closing(sqlite3.connect(killed / "store.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE precious (value)")
        database.execute(f"PRAGMA schema_version={schema_version(rig.data)}")
    before = (killed / "store.db").read_bytes()
    with pytest.raises(StoreError, match=r"not the store of a broker"):
        SqliteStore(killed)
    assert (killed / "store.db").read_bytes() == before


def failing_with(code: int) -> Callable[[], sqlite3.Connection]:
    def connect() -> sqlite3.Connection:
        error = sqlite3.OperationalError("as asked")
        error.sqlite_errorcode = code
        raise error

    return connect


def test_a_disk_that_cannot_be_read_is_no_reason_to_replace_anything(rig: Rig, tmp_path: Path) -> None:
    fill(rig)
    killed = copied(rig, tmp_path)
    checkpoint(killed)
    spoil(killed, CELLS, bytes(2))
    before = (killed / "store.db").read_bytes()
    with pytest.raises(sqlite3.OperationalError):
        FirstPage(killed).mend(failing_with(sqlite3.SQLITE_IOERR_READ))
    with pytest.raises(sqlite3.OperationalError):
        FirstPage(killed).mend(failing_with(sqlite3.SQLITE_FULL))
    assert (killed / "store.db").read_bytes() == before


def test_where_there_can_be_no_copy_a_broker_starts_without(rig: Rig) -> None:
    fill(rig)

    def no_place() -> None:
        (rig.data / COPY).unlink()
        (rig.data / COPY).mkdir()

    rig.crash(no_place)
    assert rig.inventory.damages == []
    assert bodies_in(rig) == BODIES


def test_a_store_that_somebody_made_smaller_stays_so(rig: Rig) -> None:
    fill(rig)

    def vacuum() -> None:
        with closing(sqlite3.connect(rig.data / "store.db", isolation_level=None)) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    rig.crash((rig.data / COPY).unlink)
    before = page_count(rig.data)
    rig.crash(vacuum)
    assert rig.inventory.damages == []
    rig.restart()
    assert rig.inventory.damages == []
    assert page_count(rig.data) < before
    assert bodies_in(rig) == BODIES


def test_beside_a_new_file_there_is_no_copy_of_the_old_one(rig: Rig) -> None:
    fill(rig)

    def begin_anew() -> None:
        for name in ("store.db", "anchor"):
            (rig.data / name).unlink()
        FirstPage(rig.data).mend(failing_with(sqlite3.SQLITE_CANTOPEN))
        (rig.data / "store.db").touch()

    rig.crash(begin_anew)
    assert rig.inventory.damages == []
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    rig.crash(lambda: spoil(rig.data, 0, bytes(PAGE_BYTES)))
    assert bodies_in(rig) == ["new"]


def test_while_somebody_reads_the_log_what_the_file_says_is_not_looked_at(rig: Rig, tmp_path: Path) -> None:
    fill(rig)
    producer = rig.client().producer("orders")
    assert producer.outcomes[producer.send("in the log")] == ACCEPTED
    killed = copied(rig, tmp_path)
    with (killed / "store.db").open("ab") as file:
        file.write(bytes(3 * PAGE_BYTES))
    before = (killed / "store.db").read_bytes()[:PAGE_BYTES]
    may_lose_its_log(killed)
    with closing(sqlite3.connect(killed / "store.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM queue").fetchone()
        first_page = FirstPage(killed)
        found = first_page.mend(lambda: sqlite3.connect(killed / "store.db", isolation_level=None))
        assert found == []
        assert (killed / "store.db").read_bytes()[:PAGE_BYTES] == before
    first_page.close()
    store = SqliteStore(killed)
    inventory = held_by(store.load())
    assert (inventory.damages, len(inventory.messages)) == ([], COUNT + 1)
    store.close()

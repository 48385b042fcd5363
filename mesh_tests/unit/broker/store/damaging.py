"""Damage to the file of a store that nobody uses: what a disk may do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from broker.store.anchored_log import AnchoredLog
from broker.store.judgement import judge
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.unit.broker.rig import Rig

PAGE_BYTES = 4096
_INNER = (2, 5)


def spoil(directory: Path, offset: int, by: bytes) -> None:
    with (directory / "store.db").open("r+b") as file:
        file.seek(offset)
        file.write(by)


def spoil_page(directory: Path, page: int) -> None:
    """Nothing on it can be read any more."""
    checkpoint(directory)
    spoil(directory, (page - 1) * PAGE_BYTES, bytes(8))


def spoil_word(directory: Path, word: bytes, by: bytes) -> None:
    """Wherever it stands; the pages stay sound."""
    checkpoint(directory)
    content = (directory / "store.db").read_bytes()
    assert len(word) == len(by)
    assert word in content
    (directory / "store.db").write_bytes(content.replace(word, by))


def pages_of(directory: Path, table: str) -> list[int]:
    """From its root on, in the order of what is on them."""
    checkpoint(directory)
    content = (directory / "store.db").read_bytes()
    return _tree(content, root_of(directory, table))


def root_of(directory: Path, table: str) -> int:
    with closing(sqlite3.connect(directory / "store.db")) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    return int(page)


def checkpoint(directory: Path) -> None:
    """As a broker that starts: what the log says goes into the tables, and the log may be gone then."""
    may_lose_its_log(directory)
    with closing(sqlite3.connect(directory / "store.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def may_lose_its_log(directory: Path) -> None:
    """The next that opens the database may take the log away."""
    judgement = judge(directory)
    assert judgement.findings == []
    anchored = AnchoredLog(directory, judgement)
    anchored.before_recovery()
    anchored.close()


def _tree(content: bytes, page: int) -> list[int]:
    """See the file format of SQLite: 1.5, b-tree pages."""
    start = (page - 1) * PAGE_BYTES
    head = content[start : start + PAGE_BYTES]
    if head[0] not in _INNER:
        return [page]
    cells = [int.from_bytes(head[12 + 2 * n : 14 + 2 * n]) for n in range(int.from_bytes(head[3:5]))]
    children = [*(int.from_bytes(head[cell : cell + 4]) for cell in cells), int.from_bytes(head[8:12])]
    return [page, *(each for child in children for each in _tree(content, child))]


def findings_of(rig: Rig) -> list[str]:
    """The broker goes on with a store that was opened anew."""
    rig.store.close()
    found = check(rig.data).findings
    rig.store = SqliteStore(rig.data)
    rig.store.load()
    return found


def inner_pages_of(directory: Path, table: str) -> list[int]:
    """Those that lead to others."""
    pages = pages_of(directory, table)
    content = (directory / "store.db").read_bytes()
    return [page for page in pages if content[(page - 1) * PAGE_BYTES] in _INNER]

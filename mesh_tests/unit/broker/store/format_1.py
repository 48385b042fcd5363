"""A store as the first format had it: a row for each message."""

import sqlite3
from pathlib import Path

from broker.store.schema import APPLICATION_ID
from broker.store.sqlite import SqliteStore

FORMAT_1 = """
CREATE TABLE queue (queue_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, address TEXT NOT NULL, container_id TEXT NOT NULL,
    link_name TEXT NOT NULL, seen_mark INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE message (message_id INTEGER PRIMARY KEY, size_bytes INTEGER NOT NULL, expires_at_ms INTEGER, body BLOB)
    STRICT;
CREATE TABLE entry (queue_id INTEGER NOT NULL, message_id INTEGER NOT NULL, delivery_count INTEGER NOT NULL,
    PRIMARY KEY (queue_id, message_id)) STRICT, WITHOUT ROWID;
"""


def store_of_format_1(directory: Path, count: int) -> None:
    """Even messages in both queues, odd ones in the first; the last is large; two are missing from the middle."""
    SqliteStore(directory).close()
    for name in ("store.db", "anchor"):
        (directory / name).unlink()
    database = sqlite3.connect(directory / "store.db")
    database.executescript(f"PRAGMA journal_mode=WAL; {FORMAT_1} PRAGMA application_id={APPLICATION_ID};")
    database.execute("PRAGMA user_version=1")
    queues = [(1, "queue", "orders", "", "", 2), (2, "subscription", "news.#", "c", "l", 0)]
    database.executemany("INSERT INTO queue VALUES (?,?,?,?,?,?)", queues)
    for message_id in range(1, count + 1):
        if message_id in (300, 301):
            continue
        is_last = message_id == count
        body = None if is_last else b"body %d" % message_id
        row = (message_id, 5 if is_last else len(body or b""), 1_700_000_000_000 if message_id == 7 else None, body)
        database.execute("INSERT INTO message VALUES (?,?,?,?)", row)
        for queue_id in (1, 2) if message_id % 2 == 0 else (1,):
            database.execute("INSERT INTO entry VALUES (?,?,?)", (queue_id, message_id, message_id % 3))
    database.commit()
    database.close()
    (directory / "large" / str(count)).write_bytes(b"large")

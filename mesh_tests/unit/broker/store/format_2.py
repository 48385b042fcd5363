"""A store as the second format had it: a mark for each queue, no priorities, nothing moved."""

import sqlite3
from pathlib import Path

from mesh_tests.unit.broker.store.format_3 import as_format_3

BACK_TO_2 = """
ALTER TABLE queue ADD COLUMN seen_mark INTEGER NOT NULL DEFAULT 0;
UPDATE queue SET seen_mark = coalesce((SELECT seen_mark FROM mark WHERE mark.queue_id = queue.queue_id), 0);
DROP TABLE mark;
DROP TABLE cause;
PRAGMA user_version = 2;
"""


def as_format_2(directory: Path) -> None:
    """Of one that is of this format, and has marks of the usual priority only."""
    as_format_3(directory)
    database = sqlite3.connect(directory / "store.db")
    database.executescript(BACK_TO_2)
    database.close()

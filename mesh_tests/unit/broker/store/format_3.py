"""A store as the third format had it: indexes and counts without checksums."""

import sqlite3
from pathlib import Path

from mesh_tests.unit.broker.store.format_4 import as_format_4

BACK_TO_3 = """
ALTER TABLE holding DROP COLUMN checksum;
PRAGMA user_version = 3;
"""


def as_format_3(directory: Path) -> None:
    as_format_4(directory)
    database = sqlite3.connect(directory / "store.db")
    for segment_id, index in database.execute("SELECT segment_id, message_index FROM segment").fetchall():
        unsealed = index[:20] + bytes(4) + index[24:]
        database.execute("UPDATE segment SET message_index = ? WHERE segment_id = ?", (unsealed, segment_id))
    database.commit()
    database.executescript(BACK_TO_3)
    database.close()

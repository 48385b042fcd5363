"""A store as the fourth format had it: queues without owners and times of use, logs without numbers, no anchor."""

import sqlite3
from pathlib import Path

from mesh_tests.unit.broker.store.format_5 import as_format_5

BACK_TO_4 = """
ALTER TABLE queue DROP COLUMN owner;
ALTER TABLE queue DROP COLUMN used_at_s;
DROP TABLE log_number;
PRAGMA user_version = 4;
"""


def as_format_4(directory: Path) -> None:
    as_format_5(directory)
    database = sqlite3.connect(directory / "store.db")
    database.executescript(BACK_TO_4)
    database.close()
    (directory / "anchor").unlink()

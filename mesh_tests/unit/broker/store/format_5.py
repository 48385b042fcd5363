"""A store as the fifth format had it: nothing is kept of what consumers add to messages that they give back."""

import sqlite3
from pathlib import Path

BACK_TO_5 = """
DROP TABLE annotation;
PRAGMA user_version = 5;
"""


def as_format_5(directory: Path) -> None:
    database = sqlite3.connect(directory / "store.db")
    database.executescript(BACK_TO_5)
    database.close()

"""The settings of the writer of link logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from addressing.records import PERSONAL_COLUMNS

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """The writer's settings. ``rings``: the directory of nodes' rings. ``out``: the directory of the link logs.

    A spool (records taken from a ring) becomes a file when its records have ``spool_bytes``, or the first has waited
    ``spool_s`` seconds, or when its hour is over. Files whose hour ended ``keep_s`` ago are deleted, and the oldest
    files while all files have more than ``keep_bytes``; None in place of a limit: this limit deletes nothing. With
    ``redact_key`` the values in ``redact_columns`` become keyed hashes. ``poll_s``: seconds between two looks at the
    rings.
    """

    rings: Path
    out: Path
    redact_key: bytes | None = field(default=None, repr=False)
    redact_columns: tuple[str, ...] = PERSONAL_COLUMNS
    spool_bytes: int = 16 * MIB
    spool_s: float = 60.0
    keep_s: float | None = None
    keep_bytes: int | None = None
    poll_s: float = 0.1

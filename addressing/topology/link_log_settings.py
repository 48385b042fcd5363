"""Settings under ``link_logs`` of a topology file.

Units: ``_s`` seconds, ``_bytes`` octets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from addressing.records import PERSONAL_COLUMNS, Level
from addressing.topology.part import MAX_LIMIT, LongSeconds, TopologyPart, listed

PersonalColumn = Literal["user", "remote_address", "container", "address", "name"]


class Redaction(TopologyPart):
    """Settings for the hashing of personal data in link logs. A bare word is short for {key: WORD}."""

    key: Path
    """File whose bytes are the key of the hashes. A reader with the key can tell which hash stands for which value."""
    columns: Annotated[tuple[PersonalColumn, ...], BeforeValidator(listed)] = PERSONAL_COLUMNS
    """Columns to hash: user, remote_address, container, address, name (of links and subscriptions)."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"key": value} if isinstance(value, str) else super()._from_shorthand(value)


class LinkLogs(TopologyPart):
    """Settings of link logs, the files with records of the nodes' traffic. A bare word is short for {level: WORD}."""

    level: Level = Level.SUMMARY
    """Level for addresses that name no level: off, summary (sums of each second), or full (every delivery)."""
    keep: bool = True
    """Whether records are kept in files. If not, nodes record for readers of the present only, such as a console."""
    folder: Path | None = None
    """Folder for the files (default: linklogs in the work directory)."""
    keep_s: LongSeconds = 7 * 86_400
    """Files of hours longer ago than this are deleted."""
    keep_bytes: Annotated[int, Field(ge=1 << 20, le=MAX_LIMIT)] = 10 << 30
    """Most bytes of all files together; beyond this limit the oldest files are deleted."""
    redact: Redaction | None = None
    """Hash users, addresses of peers and addresses of messages before anything is written to a file."""
    ring_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 36)] = 64 << 20
    """Room of each node for records that are not in a file yet. A record without room is dropped, and counted."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"level": value} if isinstance(value, str) else super()._from_shorthand(value)

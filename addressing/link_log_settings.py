"""What may stand under ``link_logs`` of a topology file?

Units: ``_s`` seconds, ``_bytes`` octets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from addressing.link_log import PERSONAL_COLUMNS, Level
from addressing.part import MAX_LIMIT, LongSeconds, Part, listed

PersonalColumn = Literal["user", "remote_address", "container", "address", "name"]


class Redaction(Part):
    """What is nobody's business. A bare word is short for {key: WORD}."""

    key: Path
    """File whose bytes are the key of the hashes. Who has it can tell which hash is whose."""
    columns: Annotated[tuple[PersonalColumn, ...], BeforeValidator(listed)] = PERSONAL_COLUMNS
    """What becomes hashes: user, remote_address, container, address, name (of links and subscriptions)."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"key": value} if isinstance(value, str) else super()._from_shorthand(value)


class LinkLogs(Part):
    """What nodes record of their traffic. A bare word is short for {level: WORD}."""

    level: Level = Level.SUMMARY
    """Of addresses that say nothing else: off, summary (sums of each second), or full (every delivery)."""
    folder: Path | None = None
    """Where the files go (default: linklogs in the work directory)."""
    keep_s: LongSeconds = 7 * 86_400
    """Files of hours longer ago than this go."""
    keep_bytes: Annotated[int, Field(ge=1 << 20, le=MAX_LIMIT)] = 10 << 30
    """Of all files together; beyond that the oldest go."""
    redact: Redaction | None = None
    """Make hashes of users, addresses of peers and of messages, before anything is written to a file."""
    ring_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 36)] = 64 << 20
    """Of each node, for records that are not in a file yet. What has no room there is dropped, and counted."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"level": value} if isinstance(value, str) else super()._from_shorthand(value)

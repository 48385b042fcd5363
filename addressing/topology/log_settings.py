"""Settings under ``logs`` of a topology file.

Units: ``_s`` seconds, ``_bytes`` octets.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from addressing.topology.part import MAX_LIMIT, LongSeconds, TopologyPart


class Logs(TopologyPart):
    """Settings of the files with the nodes' events, which each node rotates while it runs."""

    max_bytes: Annotated[int, Field(ge=64 << 10, le=MAX_LIMIT)] = 32 << 20
    """Most bytes of a file; the log then goes on in a new file."""
    max_age_s: LongSeconds = 7 * 86_400
    """A file that began longer ago is closed at the next event, and the log goes on in a new file."""
    keep: Annotated[int, Field(ge=0, le=1000)] = 3
    """Older files that are kept beside the one in use, as <node>.jsonl.1, the newest of them, to <node>.jsonl.3."""

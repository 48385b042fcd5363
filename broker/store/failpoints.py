"""Named failpoints: the lines of the store where a crash would hurt most, for tests that kill the process there.

With ``AMQPMESH_CRASH_AT=NAME:N`` in its environment a broker kills itself, as kill -9 does, at the Nth pass of the
line. FORMAT.md shows the content of the disk at each failpoint.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from enum import StrEnum

from broker.store.batch import StoreError

VARIABLE = "AMQPMESH_CRASH_AT"


class StoreFailpoint(StrEnum):
    SCHEMA_WRITTEN = "schema-written"
    """A new store; the directory entry may not be on disk yet."""
    UPGRADE_WRITTEN = "upgrade-written"
    """Upgraded to this format, not committed."""
    RECOVERY_WRITTEN = "recovery-written"
    """The last process's leftovers are put right, not committed."""
    RECOVERY_COMMITTED = "recovery-committed"
    """Files of bodies without a row are still there."""
    PIECES_WRITTEN = "pieces-written"
    """Pieces of large bodies are written, not synced."""
    BODIES_SYNCED = "bodies-synced"
    """Large bodies are complete, without a row."""
    ROWS_WRITTEN = "rows-written"
    """The rows of a batch are written, not committed."""
    ROWS_COMMITTED = "rows-committed"
    """The batch is committed, before any promise is kept."""
    BODIES_UNLINKED = "bodies-unlinked"
    """Files of deleted messages are gone, before any promise is kept."""


class Countdown:
    """Ends this process at its failpoint; ``left`` counts the passes until then, the last included."""

    def __init__(self, failpoint: StoreFailpoint, left: int) -> None:
        self.failpoint = failpoint
        self.left = left

    def on_passing(self, failpoint: StoreFailpoint) -> None:
        if failpoint is self.failpoint:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def when_passing(environment: Mapping[str, str]) -> Callable[[StoreFailpoint], None]:
    """The function to call at each failpoint. Raises StoreError for an unknown name, or a count below 1."""
    text = environment.get(VARIABLE)
    if text is None:
        return lambda _: None
    name, _, count = text.partition(":")
    if name not in list(StoreFailpoint) or not count.isdecimal() or int(count) < 1:
        raise StoreError(f"{VARIABLE} is {text!r}: expected NAME:N, NAME one of {', '.join(StoreFailpoint)}, N from 1")
    return Countdown(StoreFailpoint(name), int(count)).on_passing

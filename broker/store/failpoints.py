"""Named failpoints: places in the store's code where a crash would hurt most, for tests that kill the process there.

With ``AMQPMESH_CRASH_AT=NAME:N`` in its environment a broker kills itself, as kill -9 does, when it passes the
failpoint for the Nth time. FORMAT.md shows the content of the disk at each failpoint.
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
    """The tables of a new store are committed; the directory entry of the database may not be on disk yet."""
    UPGRADE_WRITTEN = "upgrade-written"
    """A store of an older format is upgraded; the transaction is not committed yet."""
    RECOVERY_WRITTEN = "recovery-written"
    """Recovery has put the leftovers of a crash in order; the transaction is not committed yet."""
    RECOVERY_COMMITTED = "recovery-committed"
    """Recovery is committed; files of large bodies without a row are not deleted yet."""
    PIECES_WRITTEN = "pieces-written"
    """Parts of large bodies are written to their files, and not synced."""
    BODIES_SYNCED = "bodies-synced"
    """Large bodies are complete and synced; no row names them yet."""
    ROWS_WRITTEN = "rows-written"
    """The rows of a batch are written, not committed."""
    ROWS_COMMITTED = "rows-committed"
    """The batch is committed; no message of the batch is accepted or delivered yet."""
    BODIES_UNLINKED = "bodies-unlinked"
    """Files of deleted large bodies are gone; no message of the batch is accepted or delivered yet."""


class Countdown:
    """Kills this process when it passes ``failpoint`` for the ``left``-th time."""

    def __init__(self, failpoint: StoreFailpoint, left: int) -> None:
        self.failpoint = failpoint
        self.left = left

    def on_passing(self, failpoint: StoreFailpoint) -> None:
        if failpoint is self.failpoint:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def when_passing(environment: Mapping[str, str]) -> Callable[[StoreFailpoint], None]:
    """Return the function to call at each failpoint: it kills this process as VARIABLE in the environment says.

    Without VARIABLE the function does nothing. Raises StoreError for an unknown name, or a count below 1.
    """
    text = environment.get(VARIABLE)
    if text is None:
        return lambda _: None
    name, _, count = text.partition(":")
    if name not in list(StoreFailpoint) or not count.isdecimal() or int(count) < 1:
        raise StoreError(f"{VARIABLE} is {text!r}: expected NAME:N, NAME one of {', '.join(StoreFailpoint)}, N from 1")
    return Countdown(StoreFailpoint(name), int(count)).on_passing

"""Where would a crash of the store hurt most? Each such line has a name, and a test can have the process end there.

With ``AMQPMESH_CRASH_AT=NAME:N`` in its environment a broker kills itself, as kill -9 does, when it passes that line
for the Nth time. FORMAT.md shows what is on the disk at each of them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from enum import StrEnum

from broker.store.batch import StoreError

VARIABLE = "AMQPMESH_CRASH_AT"


class Failpoint(StrEnum):
    SCHEMA_WRITTEN = "schema-written"
    """A new store; the directory does not name it for good yet."""
    UPGRADE_WRITTEN = "upgrade-written"
    """To this format, not committed."""
    RECOVERY_WRITTEN = "recovery-written"
    """What was left of the last process is put right, not committed."""
    RECOVERY_COMMITTED = "recovery-committed"
    """Files of bodies without a row are still there."""
    PIECES_WRITTEN = "pieces-written"
    """Of large bodies, not synced."""
    BODIES_SYNCED = "bodies-synced"
    """Complete ones, without a row."""
    ROWS_WRITTEN = "rows-written"
    """Of a batch, not committed."""
    ROWS_COMMITTED = "rows-committed"
    """Nobody was told."""
    BODIES_UNLINKED = "bodies-unlinked"
    """Of deleted messages; nobody was told."""


class Countdown:
    """To the end of this process; ``left`` is how often it passes its failpoint until then, that time included."""

    def __init__(self, failpoint: Failpoint, left: int) -> None:
        self.failpoint = failpoint
        self.left = left

    def on_passing(self, failpoint: Failpoint) -> None:
        if failpoint is self.failpoint:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def when_passing(environment: Mapping[str, str]) -> Callable[[Failpoint], None]:
    """What to call at each failpoint. Raises StoreError for a name that is none, or a count below 1."""
    text = environment.get(VARIABLE)
    if text is None:
        return lambda _: None
    name, _, count = text.partition(":")
    if name not in list(Failpoint) or not count.isdecimal() or int(count) < 1:
        raise StoreError(f"{VARIABLE} is {text!r}: expected NAME:N, NAME one of {', '.join(Failpoint)}, N from 1")
    return Countdown(Failpoint(name), int(count)).on_passing

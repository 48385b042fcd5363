"""A broker cannot start because its store is damaged: the failure that `node` and the `store` commands show."""

from __future__ import annotations

from broker.store.judgement import StoreDamagedError
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed


def damaged_store(damage: StoreDamagedError, prefix: str = "") -> CommandFailed:
    """Return the failure, with the remedy in the message itself: the log of a node shows only the message.

    ``prefix`` stands before the message, such as ``b1: ``.
    """
    return CommandFailed(
        f"{prefix}{damage}. `amqpmesh store salvage {damage.directory} NEW` saves all readable messages "
        "into a new directory, and counts them",
        exit_code=ExitCode.STORE_DAMAGED,
    )

"""Makes the failure that `amqpmesh node` and the `store` commands show if a broker's message store is damaged."""

from __future__ import annotations

from broker.store.judgement import StoreDamagedError
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed


def damaged_store(damage: StoreDamagedError, prefix: str = "") -> CommandFailed:
    """Return a failure with the damage and its remedy in the message: the log of a node shows only the message.

    ``prefix``, such as ``b1: ``, stands before the message.
    """
    return CommandFailed(
        f"{prefix}{damage}. `amqpmesh store salvage {damage.directory} NEW` saves all readable messages "
        "into a new directory, and counts them",
        exit_code=ExitCode.STORE_DAMAGED,
    )

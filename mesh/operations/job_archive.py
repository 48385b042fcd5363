"""Runs `amqpmesh linklogs pack`: writes the report's Spark job as files for a cluster, and prints the spark-submit
command that runs the job.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from linklogs.job_archive import Packed, pack
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output


def pack_and_tell(directory: Path, out: Output) -> None:
    """Write the report's Spark job into ``directory``, and print the paths as JSON, or the spark-submit command.

    Raises CommandFailed if the directory cannot be written to.
    """
    try:
        packed = pack(directory)
    except OSError as error:
        raise CommandFailed(
            f"cannot write the Spark job to {directory}: {error.strerror or error}: expected a writable folder"
        ) from None
    if out.is_json:
        out.document({"archive": str(packed.archive), "job": str(packed.job)})
    else:
        out.data(command(packed))


def command(packed: Packed) -> str:
    """Return the spark-submit command that runs the packed job, with LOGS and OUT for the user to replace."""
    return f"spark-submit --py-files {shlex.quote(str(packed.archive))} {shlex.quote(str(packed.job))} LOGS OUT"

"""What `amqpmesh linklogs pack` does, and says of it."""

from __future__ import annotations

import shlex
from pathlib import Path

from linklogs.packing import Packed, pack
from mesh.failure import CommandFailed
from mesh.output import Output


def pack_and_tell(directory: Path, out: Output) -> None:
    """Raises CommandFailed where nothing can be written."""
    try:
        packed = pack(directory)
    except OSError as error:
        raise CommandFailed(
            f"{directory}: {error.strerror or error}: expected a folder that can be written to"
        ) from None
    if out.is_json:
        out.document({"archive": str(packed.archive), "job": str(packed.job)})
    else:
        out.data(command(packed))


def command(packed: Packed) -> str:
    """That uses them."""
    return f"spark-submit --py-files {shlex.quote(str(packed.archive))} {shlex.quote(str(packed.job))} LOGS OUT"

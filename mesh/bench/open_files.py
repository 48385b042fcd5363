"""Raises the limit of open files for this process, and for the routers that this process starts."""

from __future__ import annotations

import resource

from mesh.terminal.failure import CommandFailed


def make_room(files: int) -> None:
    """Raise the limit of open files to ``files``, if the limit is lower, for this process and its children.

    Raise CommandFailed, with advice, if the limit cannot be raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files <= soft:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, max(hard, files)))
    except (ValueError, OSError):
        raise CommandFailed(
            f"each process of the benchmark needs {files:,} open files, and the limit of this user is {hard:,}",
            fix="raise the limit (`ulimit -Hn`, or LimitNOFILE of systemd), or ask for fewer --connections.",
        ) from None

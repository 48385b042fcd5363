"""A lock without a file: a socket name, which the kernel frees when the process that has bound the name ends.

The lock holds even when somebody deletes the files of a running mesh. The name is in Linux' abstract namespace, which
belongs to a network namespace: between containers only the lock of the pid file holds.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_SOCKETS = Path("/proc/net/unix")


class SocketLock:
    """A lock on a path, whether a file is there or not."""

    def __init__(self, path: Path) -> None:
        self._name = _prefix(path.parent) + path.name
        self._socket: socket.socket | None = None

    def acquire(self) -> bool:
        """Take the lock; False if another process of this user has the lock."""
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            bound.bind(f"\0{self._name}")
        except OSError as error:
            bound.close()
            # Where another user's process has the name, or the system has no abstract names, the file's lock decides.
            return error.errno != errno.EADDRINUSE or self.holder() is None
        self._socket = bound
        return True

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def holder(self) -> int | None:
        """Return the process id of this user's process that has the lock, or None."""
        return next((pid for name, pid in _held(self._name) if name == self._name), None)


def held_in(folder: Path) -> dict[str, int]:
    """Return the process id for each locked file name of ``folder``, whether the file is there or not."""
    prefix = _prefix(folder)
    return {name.removeprefix(prefix): pid for name, pid in _held(prefix)}


def _prefix(folder: Path) -> str:
    # A socket name has at most 107 bytes, and a path may be longer.
    return f"amqpmesh/{sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]}/"


def _held(prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the socket names that begin with ``prefix``, each with the process of this user that has bound the name."""
    inodes = {}
    with suppress(OSError):
        for line in _SOCKETS.read_text(errors="replace").splitlines()[1:]:
            fields = line.split(maxsplit=7)
            if len(fields) == 8 and fields[7].startswith(f"@{prefix}"):
                inodes[f"socket:[{fields[6]}]"] = fields[7][1:]
    if inodes:
        yield from _owners(inodes)


def _owners(inodes: dict[str, str]) -> Iterator[tuple[str, int]]:
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        # A process may end meanwhile, which is an OSError. Processes of other users are skipped.
        with suppress(OSError):
            if process.stat().st_uid != os.geteuid():
                continue
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    name = inodes.get(str(descriptor.readlink()))
                    if name is not None:
                        yield name, int(process.name)

"""A lock without a file: a socket name, which the kernel frees when the process that has bound the name ends.

The lock still works after somebody has deleted the files of a running mesh. The name is in Linux's abstract namespace,
and each network namespace has its own: processes in two containers see only the lock of the pid file.
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
    """A lock on a path between processes of one user; no file has to exist there."""

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
            # The answer is True, as if the lock were taken, if another user's process has the name, or the system has
            # no abstract names: then only the lock of the pid file counts.
            return error.errno != errno.EADDRINUSE or self.holder() is None
        self._socket = bound
        return True

    def descriptor(self) -> int | None:
        """Return the descriptor of the lock; None if the lock is not taken, or is none on this system."""
        return self._socket.fileno() if self._socket is not None else None

    def adopt(self, descriptor: int) -> None:
        """Hold the lock that this process took before it became another program."""
        self._socket = socket.socket(fileno=descriptor)

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def holder(self) -> int | None:
        """Return the process id of the process that has the lock; None if no process of this user has the lock."""
        return next((pid for name, pid in _held(self._name) if name == self._name), None)


def held_in(folder: Path) -> dict[str, int]:
    """Return by file name the process ids of this user's processes with a lock in ``folder``, even without a file."""
    prefix = _prefix(folder)
    return {name.removeprefix(prefix): pid for name, pid in _held(prefix)}


def _prefix(folder: Path) -> str:
    # The name has a hash in place of the folder: a socket name has at most 107 bytes, and a path may be longer.
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
        # A process that ends meanwhile raises OSError, and is skipped like the processes of other users.
        with suppress(OSError):
            if process.stat().st_uid != os.geteuid():
                continue
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    name = inodes.get(str(descriptor.readlink()))
                    if name is not None:
                        yield name, int(process.name)

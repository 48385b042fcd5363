"""A pid file: names a process and is locked for as long as the process lives.

The lock, and not the number, says whether the process runs. The kernel drops the lock with the process, so a file that
a crash left counts as stale, even if another program has the process id by now. A second lock belongs to no file
(`mesh.deploy.socket_lock`) and finds a process whose pid file was deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from mesh.deploy.socket_lock import SocketLock

ASKED_S = 0.5
"""The longest time that processes that only ask for the holder are waited for."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a pid file, as the file names it."""

    pid: int


class PidFile:
    """The pid file at ``path``: held with ``acquire`` by a process that must run once, asked by all other processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._lock = SocketLock(path)

    def acquire(self) -> bool:
        """Lock the pid file and write this process's id into the file; False if another process holds the file."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._lock_file(descriptor):
            os.close(descriptor)
            return False
        if not self._lock.acquire():
            # A process that holds the second lock lives, although its pid file was deleted: give up the new file.
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Holder(os.getpid()))).encode(), 0)
        self._descriptor = descriptor
        return True

    def _lock_file(self, descriptor: int) -> bool:
        """Lock the file behind ``descriptor``; False if another process holds the pid file.

        Whoever asks for the holder takes a shared lock for some microseconds, and must not keep a node from starting.
        So a lock counts as a holder's only if somebody has the second lock, too, or has had the file for ASKED_S.
        """
        until = time.monotonic() + ASKED_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until or self._lock.holder() is not None:
                    return False
                time.sleep(0.001)
            else:
                return True

    def handed_over(self) -> tuple[int, int | None]:
        """Keep the locks while this process becomes another program (exec), which calls ``adopt`` with the result."""
        descriptors = self._descriptor, self._lock.descriptor()
        for descriptor in descriptors:
            if descriptor is not None:
                os.set_inheritable(descriptor, True)
        return descriptors

    def adopt(self, descriptor: int, lock_descriptor: int | None) -> None:
        """Hold the pid file that this process acquired before it became another program."""
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        if lock_descriptor is not None:
            os.set_inheritable(lock_descriptor, False)
            self._lock.adopt(lock_descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1
            self._lock.release()

    def holder(self) -> Holder | None:
        """Return the living process that holds the pid file, even if the file was deleted since; None if no process
        holds the file.
        """
        found = self._holder_of_file()
        if found is None and (pid := self._lock.holder()) is not None:
            return Holder(pid)
        return found

    def _holder_of_file(self) -> Holder | None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_holder(descriptor)
        finally:
            os.close(descriptor)
        return None

    def is_left_behind(self) -> bool:
        """Tell whether a crash left the pid file: the file names a process, and no process holds the lock."""
        return self.holder() is None and self.path.exists() and self.path.stat().st_size > 0

    def __enter__(self) -> PidFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def _read_holder(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        # The file is locked, but its process has just begun and not written its id yet: the second lock finds the id.
        return None

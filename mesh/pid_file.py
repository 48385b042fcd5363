"""Who runs: a file that names a process and is locked for as long as that process lives.

The lock, and not the number, says whether it runs: the kernel drops it with the process, so a file left by a crash
is seen to be stale, and a process id used again by somebody else deceives nobody. A second lock belongs to no file
(`mesh.socket_lock`): a process whose file was deleted is found by that.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from mesh.socket_lock import SocketLock


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int


class PidFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._lock = SocketLock(path)

    def acquire(self) -> bool:
        """Lock the file and write this process into it; False if another process holds it."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        if not self._lock.acquire():
            # Its process lives, and its file was deleted.
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Holder(os.getpid()))).encode(), 0)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1
            self._lock.release()

    def holder(self) -> Holder | None:
        """The living process that holds the file, or held it before it was deleted; None when there is none."""
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
        """Whether a crash left the file: it names a process, which no longer holds it."""
        return self.holder() is None and self.path.exists() and self.path.stat().st_size > 0

    def __enter__(self) -> PidFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def _read_holder(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        # Locked, but not yet written: it runs since less than a millisecond.
        return None

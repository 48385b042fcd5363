"""The ring of one run of a node: a file, mapped into memory, for the records of the node.

The node makes the file; the link log writer takes the records out, and removes the file. The layout is in
`recording.ring_format`. A new file takes all of its disk space at once: a process that writes to mapped memory is
killed if the disk turns out to be full.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path

from recording import ring_format as ring
from recording.ring_pages import RingPages

KEPT = 3
"""Number of rings of a node's earlier runs that are kept for the writer; a starting node removes older rings."""


class RingFile:
    """Makes and maps the ring of one run of a node: a file, mapped as ``memory``, locked while the node lives."""

    def __init__(
        self,
        folder: Path,
        node: str,
        run_us: int,
        size_bytes: int,
        about: Mapping[str, str],
        *,
        overwrites: bool = False,
    ) -> None:
        """Make the ring file of ``node`` in ``folder``, and remove old rings of the node.

        ``overwrites``: nobody takes records out of the ring, so that the node overwrites the oldest.
        Raise OSError if the disk has no room for ``size_bytes``, or if the folder cannot be written to.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lost = _forget_old(folder, node)
        path = folder / f"{node}.{run_us}.ring"
        unfinished = path.with_suffix(".new")
        self._handle = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.posix_fallocate(self._handle, 0, size_bytes)
            self.memory = mmap.mmap(self._handle, size_bytes)
            self.memory[: ring.HEADER_BYTES] = header(size_bytes, run_us, about, lost, overwrites=overwrites)
            self._pages = RingPages(self.memory, ring.capacity_of(size_bytes), 0)
            # The file is renamed after its header is complete: the writer looks for `.ring`, and so never sees a ring
            # without a header.
            unfinished.rename(path)
        except OSError:
            os.close(self._handle)
            unfinished.unlink(missing_ok=True)
            raise

    def let_go_of_written(self) -> None:
        """Take the pages that the node has written out of its resident memory, once they are many.

        Call this every second or so.
        """
        self._pages.let_go(struct.unpack_from("<Q", self.memory, ring.WRITTEN_AT)[0])

    def close(self) -> None:
        """Unlock the ring file, which tells the writer that the node is gone.

        The memory stays mapped while any object refers to the memory.
        """
        # The lock is released explicitly, since the memory map keeps the file open, and os.close alone would not
        # release it.
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        os.close(self._handle)


def _forget_old(folder: Path, node: str) -> int:
    """Remove rings of earlier runs of ``node``, but for the last KEPT; return how many records are lost with them.

    Rings from which nobody takes records are not kept, and nothing counts as lost with them.
    A ring whose node still runs, and so holds the lock, stays. Files of rings that were never complete go, too.
    On a host without a writer, each run would otherwise leave a ring and fill the disk.
    """
    lost = 0
    found = sorted((path for path in folder.glob("*.ring") if path.name.rsplit(".", 2)[0] == node), key=_run_of)
    unfinished = [path for path in folder.glob("*.new") if path.name.rsplit(".", 2)[0] == node]
    overwritten = [path for path in found[-KEPT:] if _is_overwritten(path)]
    for path in (*found[:-KEPT], *overwritten, *unfinished):
        if _is_left(path):
            lost += _untaken(path)
            path.unlink(missing_ok=True)
    return lost


def _header_of(path: Path) -> bytes:
    """Return the header of the ring at ``path``; b"" for a file that cannot be read or is not a ring."""
    try:
        with path.open("rb") as file:
            found = file.read(ring.HEADER_BYTES)
    except OSError:
        return b""
    return found if len(found) == ring.HEADER_BYTES and found.startswith(ring.MAGIC) else b""


def _is_overwritten(path: Path) -> bool:
    found = _header_of(path)
    return bool(found) and struct.unpack_from("<Q", found, ring.OVERWRITES_AT)[0] != 0


def _untaken(path: Path) -> int:
    """Return about how many records are lost if the ring at ``path`` is removed: slots that the writer has not taken.

    If the writer took no slot at all, and so does not know of the drops, the drops count, too. A record with text takes
    several slots, so the number may be too large. 0 for a file that cannot be read or is not a ring.
    """
    found = _header_of(path)
    if not found or _is_overwritten(path):
        return 0
    written, taken, dropped = (
        struct.unpack_from("<Q", found, at)[0] for at in (ring.WRITTEN_AT, ring.TAKEN_AT, ring.DROPPED_AT)
    )
    return int(max(0, written - taken) + (dropped if taken == 0 else 0))


def _run_of(path: Path) -> int:
    run = path.name.split(".")[-2]
    return int(run) if run.isdecimal() else 0


def _is_left(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def header(
    size_bytes: int, run_us: int, about: Mapping[str, str], dropped: int = 0, *, overwrites: bool = False
) -> bytes:
    """Return the header of a ring file of ``size_bytes``, header included.

    ``dropped`` is the number of records that were lost with removed rings of the node's earlier runs.
    """
    found = bytearray(ring.HEADER_BYTES)
    said = json.dumps(dict(about)).encode()
    found[: len(ring.MAGIC)] = ring.MAGIC
    struct.pack_into("<Q", found, ring.CAPACITY_AT, ring.capacity_of(size_bytes))
    struct.pack_into("<Q", found, ring.RUN_AT, run_us)
    struct.pack_into("<Q", found, ring.DROPPED_AT, dropped)
    struct.pack_into("<Q", found, ring.OVERWRITES_AT, overwrites)
    found[ring.NODE_AT : ring.NODE_AT + len(said)] = said
    return bytes(found)

"""The file `anchor` says what the other files of a store must contain at least, so that a broker finds missing parts.

The file is written after each commit, without a sync: `anchor` never claims more than was synced before. After a crash
of the process the claim is exact, after a power cut it may date from any moment since the file's own last sync. Two
slots take turns, each in a separate sector, so that one slot is whole whatever happens while the other is written.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from zlib import crc32

from broker.store.large import sync_directory

NAME = "anchor"
SLOT_BYTES = 4096
_MAGIC = b"AMQmAnc1"
_RECORD = struct.Struct("<8sQIIQI8s8s")
_SUM = struct.Struct("<I")
_RECORD_BYTES = _RECORD.size + _SUM.size


IS_MAPPED = True
"""Whether records are written through a memory map; False in tests that record all writes of the file."""


class AnchorClaim(IntEnum):
    """The claim of the file `anchor` about the other files of a store."""

    NOTHING = 0
    """A new store: nothing was promised yet."""
    DATABASE = 1
    """`store.db` exists, and is being changed as a whole, in one transaction: upgraded, compacted or salvaged."""
    LOG = 2
    """The log, `store.db-wal`, exists, and has at least the frames that `anchor` names."""
    LOG_OR_ALL = 3
    """As LOG; or the log is gone, and `store.db` has its whole content: the store was closed, or is being opened."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The content of the file `anchor`: a claim about the other files of a store, and the log that it means."""

    claim: AnchorClaim
    root: int = 0
    """The page of `store.db` that has the number of the last log."""
    number: int = 0
    """The number of the log that the claim is about; each new log has a higher number."""
    salts: bytes = bytes(8)
    """The salts in the header of the log, which SQLite changes when it begins the log anew."""
    frames: int = 0
    """At least this many frames of the log were synced; ``checksum`` is the checksum in the last of these frames."""
    checksum: bytes = bytes(8)


class DamagedAnchor(ValueError):
    """The file `anchor` is damaged: neither of its two slots is whole."""


def read_anchor(directory: Path) -> tuple[Anchor, bool] | None:
    """Return the content of the newer whole slot of the file `anchor`, and whether both slots are whole.

    None if the file is missing or has only zeros. Raises DamagedAnchor if no slot is whole.
    """
    try:
        content = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return None
    found = [slot for at in (0, SLOT_BYTES) if (slot := _read(content[at : at + _RECORD_BYTES])) is not None]
    if not any(content):
        # A file of zeros counts as missing: in a new store the name of the file may reach the disk before its content.
        return None
    if not found:
        raise DamagedAnchor(f"the file {NAME} is damaged: neither of its two slots matches its checksum")
    _, anchor = max(found, key=lambda slot: slot[0])
    return anchor, len(found) == 2


class AnchorFile:
    """The file `anchor` of an open store, written by the thread that commits. Methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._serial = 0
        self._handle = -1
        self._slots: mmap.mmap | None = None
        self.anchor: Anchor | None = None
        """The content written last; None before the first write."""

    def put(self, anchor: Anchor) -> None:
        """Write ``anchor`` to both slots of the file, one after the other, and sync each."""
        is_new = self._handle < 0 and not self._path.exists()
        if self._handle < 0:
            self._open()
        for _ in range(2):
            self._serial += 1
            self._write(_bytes_of(self._serial, anchor), self._place())
            os.fsync(self._handle)
        if is_new:
            sync_directory(self._path.parent)
        self.anchor = anchor

    def note(self, frames: int, checksum: bytes) -> None:
        """Claim ``frames`` frames of the same log, without a sync.

        No system call is made: each would give up the interpreter lock.
        """
        assert self.anchor is not None
        claim, root, number, salts = self.anchor.claim, self.anchor.root, self.anchor.number, self.anchor.salts
        self._note(Anchor(claim, root, number, salts, frames, checksum))

    def begin_log(self, number: int, salts: bytes, frames: int, checksum: bytes) -> None:
        """Claim ``frames`` frames of a log that SQLite began anew, with its number and salts, without a sync."""
        assert self.anchor is not None
        self._note(Anchor(self.anchor.claim, self.anchor.root, number, salts, frames, checksum))

    def _note(self, anchor: Anchor) -> None:
        assert self._slots is not None
        self.anchor = anchor
        self._serial += 1
        place, record = self._place(), _bytes_of(self._serial, anchor)
        if IS_MAPPED:
            self._slots[place : place + _RECORD_BYTES] = record
        else:
            self._write(record, place)

    def close(self) -> None:
        if self._slots is not None:
            self._slots.close()
            self._slots = None
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        content = os.pread(self._handle, 2 * SLOT_BYTES, 0)
        if len(content) < 2 * SLOT_BYTES:
            # A short file is filled with zeros, not only extended: a write to a mapped page without room on the disk
            # would kill the process.
            self._write(bytes(2 * SLOT_BYTES - len(content)), len(content))
        serials = [slot[0] for at in (0, SLOT_BYTES) if (slot := _read(content[at : at + _RECORD_BYTES])) is not None]
        self._serial = max(serials, default=0)
        self._slots = mmap.mmap(self._handle, 2 * SLOT_BYTES)

    def _write(self, content: bytes, place: int) -> None:
        written = 0
        while written < len(content):
            written += os.pwrite(self._handle, content[written:], place + written)

    def _place(self) -> int:
        return SLOT_BYTES * (self._serial % 2)


def _read(record: bytes) -> tuple[int, Anchor] | None:
    if len(record) != _RECORD_BYTES or record[-_SUM.size :] != _SUM.pack(crc32(record[: -_SUM.size])):
        return None
    magic, serial, claim, root, number, frames, salts, checksum = _RECORD.unpack_from(record)
    if magic != _MAGIC or claim not in list(AnchorClaim):
        return None
    return serial, Anchor(AnchorClaim(claim), root, number, salts, frames, checksum)


def _bytes_of(serial: int, anchor: Anchor) -> bytes:
    record = _RECORD.pack(
        _MAGIC, serial, anchor.claim, anchor.root, anchor.number, anchor.frames, anchor.salts, anchor.checksum
    )
    return record + _SUM.pack(crc32(record))
